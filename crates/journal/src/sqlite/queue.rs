//! A bounded way from async callers to threads.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

use tokio::sync::Semaphore;

/// Where items are handed in.
pub(super) struct Entrance<T> {
    room: Arc<Semaphore>,
    /// `None` once stopped. Callers do not keep a copy while they wait for room: one that is never polled again must not
    /// keep the threads from ending.
    queue: Mutex<Option<mpsc::Sender<T>>>,
}

/// Where threads take items out.
pub(super) struct Exit<T> {
    room: Arc<Semaphore>,
    queue: mpsc::Receiver<T>,
}

/// A queue in which at most `room` items wait.
pub(super) fn bounded<T>(room: usize) -> (Entrance<T>, Exit<T>) {
    let room = Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS)));
    let (sender, receiver) = mpsc::channel();
    let entrance = Entrance { room: Arc::clone(&room), queue: Mutex::new(Some(sender)) };
    (entrance, Exit { room, queue: receiver })
}

impl<T> Entrance<T> {
    /// Hands in `item` once there is room, in the order of asking. `false` if nothing is taken any more.
    pub(super) async fn send(&self, item: T) -> bool {
        let Ok(room) = self.room.acquire().await else { return false };
        room.forget();
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.as_ref().is_some_and(|queue| queue.send(item).is_ok())
    }

    /// Takes nothing more. What waits is still taken out; who waits for room is turned away.
    pub(super) fn stop(&self) {
        self.room.close();
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl<T> Exit<T> {
    /// The next item, as soon as there is one; `None` when nothing will come.
    pub(super) fn next(&self) -> Option<T> {
        let item = self.queue.recv().ok()?;
        self.room.add_permits(1);
        Some(item)
    }

    /// The next item, if one waits.
    pub(super) fn next_waiting(&self) -> Option<T> {
        let item = self.queue.try_recv().ok()?;
        self.room.add_permits(1);
        Some(item)
    }
}

// Written out because the items need not be printable.
impl<T> fmt::Debug for Entrance<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("room", &self.room.available_permits()).finish_non_exhaustive()
    }
}
