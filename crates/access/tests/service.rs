//! The service over a journal: what it knows, what is kept, and what a restart and another node see.

#![allow(clippy::unwrap_used, reason = "test helpers, too, say that something is there by taking it")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use jiff::Timestamp;
use switchboard_access::{Access, AccessKeys, Grant, STREAM};
use switchboard_exchange::{Clock as _, Exchange, Options, SystemClock};
use switchboard_journal::{Journal, MemoryJournal, Seq, StreamId};

async fn open(journal: &MemoryJournal) -> Access {
    let journal = Arc::new(journal.clone());
    let exchange = Exchange::<AccessKeys>::new(journal, Arc::new(SystemClock), (), Options::default());
    Access::open(exchange).await.unwrap()
}

fn now() -> Timestamp {
    SystemClock.now()
}

#[tokio::test]
async fn a_new_key_tells_who_its_holder_is() {
    let access = open(&MemoryJournal::new()).await;
    assert!(!access.has_live_keys(now()));
    let grant = Grant { projects: Some(["shop".to_owned()].into()), ..Grant::default() };
    let (key, bearer) = access.create("laptop", grant.clone(), None).await.unwrap();
    assert!(access.has_live_keys(now()));
    let caller = access.authenticate(&bearer, now()).unwrap();
    assert_eq!((&*caller.name, &*caller.grant), ("laptop", &grant));
    assert_eq!(bearer.len(), "sb_".len() + 8 + 1 + 64);
    assert_eq!(access.list().await.unwrap(), [key]);
}

#[tokio::test]
async fn what_is_no_key_is_nobody() {
    let access = open(&MemoryJournal::new()).await;
    let (key, bearer) = access.create("laptop", Grant::default(), None).await.unwrap();
    let almost = format!("{}x", &bearer[..bearer.len() - 1]);
    let id_only = format!("sb_{}", key.id);
    for wrong in ["", "sb_", "sb__", &almost, &id_only, &bearer[3..], "Bearer", &format!("{bearer} ")] {
        assert_eq!(access.authenticate(wrong, now()), None, "{wrong}");
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_after_a_restart() {
    let journal = MemoryJournal::new();
    let access = open(&journal).await;
    let (_, kept) = access.create("laptop", Grant::default(), None).await.unwrap();
    let (_, ended) = access.create("phone", Grant::default(), None).await.unwrap();
    assert!(access.revoke("phone").await.unwrap().revoked_at.is_some());
    assert_eq!(access.authenticate(&ended, now()), None);
    access.stop().await;

    let access = open(&journal).await;
    assert_eq!(access.authenticate(&ended, now()), None);
    assert!(access.authenticate(&kept, now()).is_some());
    assert_eq!(access.list().await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_expired_key_is_refused() {
    let access = open(&MemoryJournal::new()).await;
    let expiry = now() + jiff::SignedDuration::from_hours(1);
    let (_, bearer) = access.create("guest", Grant::default(), Some(expiry)).await.unwrap();
    assert!(access.authenticate(&bearer, now()).is_some());
    assert_eq!(access.authenticate(&bearer, expiry), None);
    assert!(!access.has_live_keys(expiry));
}

#[tokio::test]
async fn the_journal_holds_a_hash_and_not_the_secret() {
    let journal = MemoryJournal::new();
    let (_, bearer) = open(&journal).await.create("laptop", Grant::default(), None).await.unwrap();
    let secret = bearer.rsplit('_').next().unwrap();
    let stream = StreamId::new(STREAM).unwrap();
    let entries = journal.read(&stream, Seq::START, NonZeroUsize::MAX).await.unwrap();
    let text: String = entries.iter().map(|entry| entry.payload.as_str()).collect();
    assert!(text.contains(r#""secret_sha256":""#) && text.contains("laptop"), "{text}");
    assert!(!text.contains(secret) && !text.contains(&bearer), "{text}");
}

#[tokio::test]
async fn a_node_hears_of_keys_made_and_revoked_on_another() {
    let journal = MemoryJournal::shared();
    let (here, there) = (open(&journal).await, open(&journal).await);
    let (_, bearer) = there.create("laptop", Grant::default(), None).await.unwrap();
    until(|| here.authenticate(&bearer, now()).is_some()).await;
    there.revoke("laptop").await.unwrap();
    until(|| here.authenticate(&bearer, now()).is_none()).await;
}

async fn until(condition: impl Fn() -> bool) {
    let deadline = now() + jiff::SignedDuration::from_secs(10);
    while !condition() {
        assert!(now() < deadline, "it did not become so in 10 s");
        tokio::task::yield_now().await;
    }
}
