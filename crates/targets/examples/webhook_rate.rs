//! How many webhooks one process delivers in a second to a server of its own: `cargo run --release --example webhook_rate`.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a tool for one who looks at it")]

use std::time::Instant;

use futures::{StreamExt, stream};
use switchboard_schedule::{Address, Delivery, Message, Outcome, Target};
use switchboard_targets::{Webhook, WebhookOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const DELIVERIES: u64 = 100_000;

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    let webhook = Webhook::new(WebhookOptions {
        allow_private: true,
        ..WebhookOptions::new(*b"a secret of twenty-four.")
    });
    let at_once = webhook.manners().per_group;
    let start = Instant::now();
    let delivered = stream::iter(0..DELIVERIES)
        .map(|n| webhook.deliver(vec![delivery(&url, n)]))
        .buffer_unordered(at_once)
        .filter(|outcomes| std::future::ready(outcomes[0] == Outcome::delivered()))
        .count()
        .await;
    let micros = start.elapsed().as_micros().max(1);
    let rate = u128::from(DELIVERIES) * 1_000_000 / micros;
    println!("{delivered} of {DELIVERIES} delivered, {rate} a second");
}

fn delivery(url: &str, n: u64) -> Delivery {
    Delivery {
        key: format!("schedule-{n}@2025-01-02T09:00:00Z").into(),
        schedule: n,
        name: "rate".into(),
        address: Address::new("webhook", url),
        message: Message::Text("x".repeat(200).into()),
        due_ms: 1_735_808_400_000,
        attempt: 1,
    }
}

/// Answers every request; a client that waits for its answer never sends two at once.
async fn serve(mut stream: TcpStream) {
    let mut buffer = vec![0; 16 << 10];
    let mut filled = 0;
    while let Ok(read @ 1..) = stream.read(&mut buffer[filled..]).await {
        filled += read;
        if buffer[..filled].ends_with(b"\"}") {
            filled = 0;
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        }
    }
}
