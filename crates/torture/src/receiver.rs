//! What schedules call: a small HTTP server that takes each key once, and remembers what it took.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::{Outcome, Torment};

/// How often it says that it cannot take a delivery now: once in so many.
const REFUSES_ONE_IN: u64 = 16;

/// A due time of a schedule, as it is written in the delivery.
pub(crate) type Due = (u64, String);

/// A receiver of webhooks. It listens until the process ends.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    taken: Arc<Mutex<Taken>>,
}

/// What was taken.
#[derive(Debug, Default)]
struct Taken {
    keys: HashMap<Due, String>,
    dues: HashMap<String, Due>,
    calls: u64,
    repeated: u64,
    refused: u64,
    broken: Option<String>,
}

/// How much reached a receiver.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Received {
    /// Different keys.
    pub(crate) taken: u64,
    /// Calls under a key that it had taken before.
    pub(crate) repeated: u64,
    /// Calls that it answered with 503.
    pub(crate) refused: u64,
}

impl Receiver {
    pub(crate) fn start() -> Outcome<Self> {
        let listener =
            TcpListener::bind(("127.0.0.1", 0)).map_err(Torment::stuck("listening for webhooks"))?;
        let address = listener.local_addr().map_err(Torment::stuck("listening for webhooks"))?;
        let receiver = Self { address, taken: Arc::default() };
        let serving = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let receiver = serving.clone();
                // One per connection that the server keeps: as many as it may have to one host.
                std::thread::spawn(move || receiver.serve(stream));
            }
        });
        Ok(receiver)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers calls until the connection ends, as it does when the server is killed.
    fn serve(&self, stream: TcpStream) {
        let Ok(mut answers) = stream.try_clone() else { return };
        let mut requests = BufReader::new(stream);
        while let Some((key, body)) = read(&mut requests) {
            let status = if self.take(&key, &body) { "200 OK" } else { "503 Service Unavailable" };
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            if answers.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn take(&self, key: &str, body: &[u8]) -> bool {
        let mut taken = self.lock();
        taken.calls += 1;
        if taken.calls.is_multiple_of(REFUSES_ONE_IN) {
            taken.refused += 1;
            return false;
        }
        if let Err(why) = taken.enter(key, body) {
            taken.broken.get_or_insert(why);
        }
        true
    }

    /// Whether the due time reached it.
    pub(crate) fn has(&self, due: &Due) -> bool {
        self.lock().keys.contains_key(due)
    }

    pub(crate) fn received(&self) -> Received {
        let taken = self.lock();
        Received { taken: taken.dues.len() as u64, repeated: taken.repeated, refused: taken.refused }
    }

    /// The first rule that a call broke.
    pub(crate) fn check(&self) -> Outcome {
        self.lock().broken.clone().map_or(Ok(()), |why| Err(Torment::Broken(why)))
    }
}

impl Taken {
    fn enter(&mut self, key: &str, body: &[u8]) -> Result<(), String> {
        let shown = || String::from_utf8_lossy(body);
        let said: Value = serde_json::from_slice(body).map_err(|why| format!("{why}: {}", shown()))?;
        let schedule = said["schedule"].as_str().and_then(|number| number.parse().ok());
        let (Some(schedule), Some(due)) = (schedule, said["due"].as_str()) else {
            return Err(format!("a delivery says of which schedule and due time it is: {}", shown()));
        };
        if said["key"] != key {
            return Err(format!("a delivery has one key: '{key}' and {}", shown()));
        }
        let due: Due = (schedule, due.to_owned());
        match self.keys.get(&due) {
            None => {}
            Some(before) if before == key => self.repeated += 1,
            Some(before) => return Err(format!("{due:?} was delivered under '{before}' and under '{key}'")),
        }
        match self.dues.get(key) {
            Some(before) if *before != due => Err(format!("'{key}' is the key of {before:?} and of {due:?}")),
            _ => {
                self.keys.insert(due.clone(), key.to_owned());
                self.dues.insert(key.to_owned(), due);
                Ok(())
            }
        }
    }
}

/// The key and the body of the next call; none at the end of the connection.
fn read(requests: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if requests.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(": ") else { continue };
        match name.to_ascii_lowercase().as_str() {
            "webhook-id" => value.clone_into(&mut key),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    requests.read_exact(&mut body).ok()?;
    Some((key, body))
}
