//! What the SQLite journal does when something is wrong: with its directory, its file, the disk, or another process.
//!
//! The faults are real: files are damaged, limits reached, permissions missing. Those that would take the test process with
//! them happen to a child, which is this binary again, told by [`ROLE_DIR`] to play its part.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use switchboard_journal::{
    AppendError, Entry, Journal, OpenError, Payload, ReadError, Seq, Snapshot, SqliteJournal, SqliteOptions,
    StreamId,
};
use tempfile::TempDir;

/// Set for a child: the directory in which it plays its part.
const ROLE_DIR: &str = "SWITCHBOARD_JOURNAL_FAULT_IN";

fn open(dir: &Path) -> SqliteJournal {
    SqliteJournal::open(dir, &SqliteOptions::default()).unwrap()
}

fn open_error(dir: &Path) -> OpenError {
    SqliteJournal::open(dir, &SqliteOptions::default()).expect_err("the journal opened")
}

fn tempdir() -> (TempDir, PathBuf) {
    let kept = tempfile::tempdir().unwrap();
    let path = kept.path().canonicalize().unwrap();
    (kept, path)
}

fn stream(name: &str) -> StreamId {
    StreamId::new(name).unwrap()
}

fn payload(text: &str) -> Payload {
    Payload::new(serde_json::to_string(text).unwrap()).unwrap()
}

fn of_size(bytes: usize) -> Payload {
    payload(&"x".repeat(bytes))
}

async fn read_all(journal: &dyn Journal, stream: &StreamId) -> Vec<Entry> {
    journal.read(stream, Seq::START, NonZeroUsize::MAX).await.unwrap()
}

/// A journal of `count` entries, closed again.
async fn written(dir: &Path, count: u64) {
    let journal = open(dir);
    for number in 0..count {
        for name in ["project/shop", "project/mill"] {
            journal.append(&stream(name), Seq::new(number), of_size(500)).await.unwrap();
        }
    }
    journal.close().await;
}

/// Runs the test `role` in a child that finds `dir` under [`ROLE_DIR`].
fn child(role: &str, dir: &Path, change: impl FnOnce(&mut Command)) {
    // A shell starts it with the signal ignored that a process gets on reaching its limit of file size.
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", r#"trap "" XFSZ; exec "$0" --exact "$1" --nocapture"#])
        .arg(std::env::current_exe().unwrap())
        .arg(role)
        .env(ROLE_DIR, dir);
    change(&mut command);
    let output = command.output().unwrap();
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("part played"), "the child did not get to its end:\n{told}");
}

fn role() -> Option<PathBuf> {
    std::env::var_os(ROLE_DIR).map(PathBuf::from)
}

/// Ends a child as `kill -9` would.
#[allow(clippy::print_stderr, reason = "the parent listens")]
fn part_played() -> ! {
    eprintln!("part played");
    std::process::abort()
}

#[tokio::test]
async fn a_new_directory_and_its_files_are_for_their_owner_alone() {
    let (_kept, dir) = tempdir();
    let dir = dir.join("not/yet/there");
    written(&dir, 1).await;
    let journal = open(&dir);
    journal.append(&stream("bus"), Seq::START, of_size(10)).await.unwrap();
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for file in fs::read_dir(&dir).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[tokio::test]
async fn a_directory_has_one_owner_at_a_time() {
    let (_kept, dir) = tempdir();
    let journal = open(&dir);
    assert_eq!(
        open_error(&dir).to_string(),
        format!(
            "the data directory '{}' is in use by process {}: stop that process, or give this one another data directory",
            dir.display(),
            std::process::id()
        )
    );
    journal.close().await;
    drop(open(&dir));
    drop(open(&dir));
}

#[tokio::test]
async fn the_lock_of_a_process_that_was_killed_is_gone() {
    if let Some(dir) = role() {
        let journal = open(&dir);
        journal.append(&stream("bus"), Seq::START, payload("left behind")).await.unwrap();
        part_played();
    }
    let (_kept, dir) = tempdir();
    child("the_lock_of_a_process_that_was_killed_is_gone", &dir, |_| {});
    assert!(dir.join("lock").exists());
    assert_eq!(read_all(&open(&dir), &stream("bus")).await.len(), 1);
}

#[test]
fn a_data_directory_must_be_a_directory() {
    let (_kept, dir) = tempdir();
    fs::write(dir.join("file"), "").unwrap();
    let error = open_error(&dir.join("file"));
    assert!(matches!(&error, OpenError::Directory { .. }), "{error:?}");
    assert!(
        error.to_string().ends_with("it must be a directory that this user may read and write"),
        "{error}"
    );
}

#[tokio::test]
async fn a_newer_format_is_refused_by_both_versions() {
    let (_kept, dir) = tempdir();
    written(&dir, 1).await;
    let file = dir.join("journal.db");
    let shell = rusqlite::Connection::open(&file).unwrap();
    shell.execute("update meta set value = 7 where key = 'format_version'", []).unwrap();
    drop(shell);
    assert_eq!(
        open_error(&dir).to_string(),
        format!(
            "'{}' has journal format 7, and this release knows formats up to 1: \
             run the release that wrote it, or a later one",
            file.display()
        )
    );
}

#[test]
fn what_is_not_a_journal_is_left_alone() {
    let text = "dear diary, this is not a database; it is long enough to be one, though. ".repeat(100);
    let (_kept, dir) = tempdir();
    let file = dir.join("journal.db");
    fs::write(&file, &text).unwrap();
    let error = open_error(&dir);
    assert!(matches!(&error, OpenError::NotAJournal { .. }), "{error:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    fs::remove_file(&file).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("create table bookmarks (url text)").unwrap();
    drop(other);
    let before = fs::read(&file).unwrap();
    let error = open_error(&dir);
    assert!(error.to_string().contains("(it is another program's SQLite database): move it away"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), before);

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = open_error(&dir);
    assert!(error.to_string().contains("it is a directory"), "{error}");
}

/// Overwrites pages from the middle of the file.
fn damage(dir: &Path) {
    let file = fs::OpenOptions::new().write(true).open(dir.join("journal.db")).unwrap();
    let middle = file.metadata().unwrap().len() / 4_096 / 2 * 4_096;
    file.write_all_at(&[0xa5; 3 * 4_096], middle).unwrap();
}

#[tokio::test]
async fn damage_is_found_at_the_start() {
    let (_kept, dir) = tempdir();
    written(&dir, 200).await;
    damage(&dir);
    let error = open_error(&dir);
    assert!(matches!(&error, OpenError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("restore a backup, or save what is readable with"), "{error}");
}

#[tokio::test]
async fn a_file_that_was_cut_short_is_found_at_the_start() {
    let (_kept, dir) = tempdir();
    written(&dir, 200).await;
    let file = fs::OpenOptions::new().write(true).open(dir.join("journal.db")).unwrap();
    file.set_len(file.metadata().unwrap().len() / 8_192 * 4_096).unwrap();
    let mut options = SqliteOptions::default();
    options.check_bytes = 0;
    let error = SqliteJournal::open(&dir, &options).unwrap_err();
    assert!(matches!(&error, OpenError::Damaged { .. }), "{error:?}");
}

#[tokio::test]
async fn damage_in_a_large_file_stops_only_who_meets_it() {
    let (_kept, dir) = tempdir();
    written(&dir, 200).await;
    damage(&dir);
    let mut options = SqliteOptions::default();
    options.check_bytes = 0;
    let journal = SqliteJournal::open(&dir, &options).unwrap();
    let shop = stream("project/shop");
    let refused = journal.read(&shop, Seq::START, NonZeroUsize::MAX).await.unwrap_err();
    assert!(matches!(&refused, ReadError::Unavailable(_)), "{refused:?}");
    assert!(refused.to_string().contains("is damaged: stop the server"), "{refused}");
    // Neither the connection that met it nor the writer is worse off.
    for _ in 0..4 {
        assert_eq!(journal.read(&shop, Seq::new(198), NonZeroUsize::MAX).await.unwrap().len(), 2);
    }
    journal.append(&shop, Seq::new(200), of_size(500)).await.unwrap();
    journal.append(&stream("new"), Seq::START, of_size(500)).await.unwrap();
}

#[tokio::test]
async fn an_entry_that_is_missing_is_an_error_and_not_a_gap() {
    let (_kept, dir) = tempdir();
    written(&dir, 5).await;
    let shell = rusqlite::Connection::open(dir.join("journal.db")).unwrap();
    shell.execute("delete from entries where stream = 1 and seq = 3", []).unwrap();
    drop(shell);
    let journal = open(&dir);
    let refused = journal.read(&stream("project/shop"), Seq::START, NonZeroUsize::MAX).await.unwrap_err();
    assert!(refused.to_string().contains("has lost entry 3 of stream 'project/shop'"), "{refused}");
}

#[tokio::test]
async fn a_file_that_may_not_be_written_is_refused() {
    if let Some(dir) = role() {
        let error = open_error(&dir);
        assert!(matches!(&error, OpenError::ReadOnly { .. }), "{error:?}");
        assert!(error.to_string().contains("must be writable by this user; see `ls -la"), "{error}");
        part_played();
    }
    let (_kept, dir) = tempdir();
    written(&dir, 1).await;
    // The superuser may write anything, so it lets somebody else try.
    let superuser = dir.metadata().unwrap().uid() == 0;
    fs::set_permissions(dir.join("lock"), fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(dir.join("journal.db"), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o555)).unwrap();
    child("a_file_that_may_not_be_written_is_refused", &dir, |command| {
        if superuser {
            command.uid(65_534).gid(65_534);
        }
    });
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
}

fn check_unavailable<T: std::fmt::Debug>(result: Result<T, AppendError>, says: &str) {
    match result {
        Err(AppendError::Unavailable(error)) => assert!(error.to_string().contains(says), "{error}"),
        other => panic!("expected that the journal takes no writes, got {other:?}"),
    }
}

#[tokio::test]
async fn a_full_journal_refuses_appends_until_there_is_room() {
    let (_kept, dir) = tempdir();
    let mut options = SqliteOptions::default();
    options.max_bytes = Some(400_000);
    let journal = SqliteJournal::open(&dir, &options).unwrap();
    let shop = stream("project/shop");
    journal.append(&shop, Seq::START, of_size(10)).await.unwrap();
    let snapshot = Snapshot { seq: Seq::new(1), state: "0".into() };
    journal.save_snapshot(&shop, snapshot.clone()).await.unwrap();
    let mut head = Seq::new(1);
    let refused = loop {
        match journal.append(&shop, head, of_size(20_000)).await {
            Ok(seq) => head = seq,
            refused => break refused,
        }
    };
    check_unavailable(refused, "or the file has reached its limit of 400000 bytes");
    assert!(head > Seq::new(10), "full after entry {head}");

    // Nothing of it is there, reads go on, and it can be refused again.
    assert_eq!(journal.head(&shop).await.unwrap(), head);
    check_unavailable(journal.append(&shop, head, of_size(20_000)).await, "limit");
    assert_eq!(read_all(&journal, &shop).await.len() as u64, head.get());

    journal.save_snapshot(&shop, Snapshot { seq: head, ..snapshot }).await.unwrap();
    journal.trim(&shop, head).await.unwrap();
    assert_eq!(journal.append(&shop, head, of_size(20_000)).await.unwrap(), head.next());
    drop(journal);
    assert_eq!(open(&dir).head(&shop).await.unwrap(), head.next());
}

#[tokio::test]
async fn an_append_that_does_not_fit_does_not_take_others_with_it() {
    let (_kept, dir) = tempdir();
    let mut options = SqliteOptions::default();
    options.max_bytes = Some(400_000);
    let journal = SqliteJournal::open(&dir, &options).unwrap();
    let (large, small) = (stream("large"), stream("small"));
    // All wait at once, and so go into few transactions.
    for number in 0..20 {
        let after = Seq::new(number);
        let (refused, accepted) = futures::join!(
            journal.append(&large, Seq::START, of_size(1_000_000)),
            journal.append(&small, after, of_size(10))
        );
        check_unavailable(refused, "limit");
        assert_eq!(accepted.unwrap(), after.next());
    }
    assert_eq!(journal.head(&large).await.unwrap(), Seq::START);
}

#[tokio::test]
async fn a_disk_that_refuses_writes_is_tried_again() {
    if let Some(dir) = role() {
        let journal = open(&dir);
        let shop = stream("project/shop");
        journal.append(&shop, Seq::START, of_size(100)).await.unwrap();
        let log = dir.join("journal.db-wal").metadata().unwrap().len();
        let allowed = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: Some(log + 4_096 + 2_000), ..allowed }).unwrap();
        for _ in 0..3 {
            let refused = journal.append(&shop, Seq::new(1), of_size(50_000)).await;
            check_unavailable(refused, "the system failed to read or write");
            assert_eq!(read_all(&journal, &shop).await.len(), 1);
        }
        setrlimit(Resource::Fsize, allowed).unwrap();
        assert_eq!(journal.append(&shop, Seq::new(1), payload("accepted")).await.unwrap(), Seq::new(2));
        part_played();
    }
    let (_kept, dir) = tempdir();
    child("a_disk_that_refuses_writes_is_tried_again", &dir, |_| {});
    let entries = read_all(&open(&dir), &stream("project/shop")).await;
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1].payload, payload("accepted"));
}

/// Makes `fsync` and `fdatasync` fail: once if a file `fail-once` is in the directory, always if `fail-always` is.
const FAILING_SYNC: &str = r#"
    #define _GNU_SOURCE
    #include <errno.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    static int named(char *path, size_t size, const char *name) {
        const char *dir = getenv("SWITCHBOARD_JOURNAL_FAULT_IN");
        return dir && snprintf(path, size, "%s/%s", dir, name) < (int)size;
    }
    static int fails(void) {
        char path[4096];
        if (named(path, sizeof path, "fail-always") && access(path, F_OK) == 0) return 1;
        return named(path, sizeof path, "fail-once") && unlink(path) == 0;
    }
    int fsync(int fd) { if (fails()) { errno = EIO; return -1; } return syscall(SYS_fsync, fd); }
    int fdatasync(int fd) { if (fails()) { errno = EIO; return -1; } return syscall(SYS_fdatasync, fd); }
"#;

/// Runs the test `role` in a child whose syncs can be made to fail.
fn child_with_failing_syncs(role: &str, dir: &Path) {
    let (_kept, tools) = tempdir();
    let (source, library) = (tools.join("sync.c"), tools.join("sync.so"));
    fs::write(&source, FAILING_SYNC).unwrap();
    // There is a C compiler wherever the bundled SQLite was built.
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status().unwrap();
    assert!(built.success());
    child(role, dir, |command| {
        command.env("LD_PRELOAD", &library);
    });
}

#[tokio::test]
async fn a_commit_whose_sync_failed_once_is_certainly_not_written() {
    if let Some(dir) = role() {
        let journal = open(&dir);
        let shop = stream("project/shop");
        journal.append(&shop, Seq::START, payload("first")).await.unwrap();
        fs::write(dir.join("fail-once"), "").unwrap();
        let refused = journal.append(&shop, Seq::new(1), payload("refused")).await;
        check_unavailable(refused, "the system failed to read or write");
        assert!(!dir.join("fail-once").exists(), "nothing was synced");
        assert_eq!(journal.head(&shop).await.unwrap(), Seq::new(1));
        part_played();
    }
    let (_kept, dir) = tempdir();
    child_with_failing_syncs("a_commit_whose_sync_failed_once_is_certainly_not_written", &dir);
    // Its commit record had reached the log: without a later one in its place, this start would take it for valid.
    let entries = read_all(&open(&dir), &stream("project/shop")).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
}

#[tokio::test]
async fn a_commit_that_cannot_be_settled_is_unknown_and_the_journal_recovers() {
    if let Some(dir) = role() {
        let journal = open(&dir);
        let shop = stream("project/shop");
        journal.append(&shop, Seq::START, payload("first")).await.unwrap();
        fs::write(dir.join("fail-always"), "").unwrap();
        let refused = journal.append(&shop, Seq::new(1), payload("unknown")).await;
        assert!(matches!(&refused, Err(AppendError::Unknown(_))), "{refused:?}");
        assert_eq!(journal.head(&shop).await.unwrap(), Seq::new(1));
        fs::remove_file(dir.join("fail-always")).unwrap();
        journal.append(&shop, Seq::new(1), payload("second")).await.unwrap();
        part_played();
    }
    let (_kept, dir) = tempdir();
    child_with_failing_syncs("a_commit_that_cannot_be_settled_is_unknown_and_the_journal_recovers", &dir);
    let entries = read_all(&open(&dir), &stream("project/shop")).await;
    let texts: Vec<_> = entries.iter().map(|entry| entry.payload.as_str()).collect();
    assert_eq!(texts, [r#""first""#, r#""second""#]);
}

#[tokio::test]
async fn what_another_program_wrote_is_a_conflict_and_not_overwritten() {
    let (_kept, dir) = tempdir();
    let journal = open(&dir);
    let (shop, mill) = (stream("project/shop"), stream("project/mill"));
    journal.append(&shop, Seq::START, payload("first")).await.unwrap();
    let shell = rusqlite::Connection::open(dir.join("journal.db")).unwrap();
    shell.execute("insert into entries (stream, seq, payload) values (1, 2, '\"smuggled\"')", []).unwrap();
    let refused = journal.append(&shop, Seq::new(1), payload("second")).await;
    assert!(matches!(refused, Err(AppendError::Conflict { actual, .. }) if actual == Seq::new(2)));
    journal.append(&shop, Seq::new(2), payload("third")).await.unwrap();
    shell.execute("insert into entries (stream, seq, payload) values (1, 4, '\"smuggled\"')", []).unwrap();
    let (refused, accepted) = futures::join!(
        journal.append(&shop, Seq::new(3), payload("fourth")),
        journal.append(&mill, Seq::START, payload("first"))
    );
    assert!(matches!(refused, Err(AppendError::Conflict { actual, .. }) if actual == Seq::new(4)));
    accepted.unwrap();
    assert_eq!(read_all(&journal, &shop).await.len(), 4);
}

#[tokio::test]
async fn the_journal_can_be_queried_while_it_is_served() {
    let (_kept, dir) = tempdir();
    let journal = open(&dir);
    for (after, kind) in (0..).zip(["registered", "locked"]) {
        let payload = Payload::new(format!(r#"{{"type":"{kind}"}}"#)).unwrap();
        journal.append(&stream("project/shop"), Seq::new(after), payload).await.unwrap();
    }
    let shell = rusqlite::Connection::open(dir.join("journal.db")).unwrap();
    let kind: String = shell
        .query_row(
            "select payload ->> 'type' from journal where stream = 'project/shop' and seq = 2",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(kind, "locked");
}

/// The files of the directory in which `text` occurs.
fn files_with(dir: &Path, text: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|file| fs::read(file).unwrap().windows(text.len()).any(|window| window == text.as_bytes()))
        .collect()
}

#[tokio::test]
async fn redacted_text_is_in_none_of_the_files() {
    let (_kept, dir) = tempdir();
    let journal = open(&dir);
    let mut random = StdRng::seed_from_u64(1);
    let mut heads = [0_u64; 20];
    let secret = |stream: usize, seq: u64| format!("secret<{stream}:{seq}>");
    let name = |number: usize| stream(&format!("project/{number}"));
    let mut oldest = [1_u64; 20];
    for step in 0..1_500 {
        // Entries of all sizes in any order, and trims between them: SQLite moves entries from page to page.
        let number = random.random_range(0..heads.len());
        let length = [1, 3, 10, 60, 300][random.random_range(0..5)];
        let text = secret(number, heads[number] + 1).repeat(length);
        heads[number] =
            journal.append(&name(number), Seq::new(heads[number]), payload(&text)).await.unwrap().get();
        if step % 50 == 49 {
            let covered = Seq::new(heads[number] / 2);
            let snapshot = Snapshot { seq: covered, state: "0".into() };
            journal.save_snapshot(&name(number), snapshot).await.unwrap();
            journal.trim(&name(number), covered).await.unwrap();
            oldest[number] = covered.get() + 1;
        }
    }
    assert!(!files_with(&dir, &secret(0, heads[0])).is_empty(), "the search finds nothing at all");

    let mut redacted = Vec::new();
    for (number, head) in heads.into_iter().enumerate() {
        let seqs: Vec<_> = (1..=head).filter(|seq| seq % 2 == 0).map(Seq::new).collect();
        journal.redact(&name(number), &seqs).await.unwrap();
        redacted.extend(seqs.into_iter().map(|seq| secret(number, seq.get())));
        if number == 0 {
            for text in &redacted {
                assert_eq!(files_with(&dir, text), Vec::<PathBuf>::new(), "{text} is left");
            }
        }
    }
    let everything: Vec<u8> =
        fs::read_dir(&dir).unwrap().flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
    let everything = String::from_utf8_lossy(&everything);
    let left: Vec<_> = redacted.iter().filter(|text| everything.contains(text.as_str())).collect();
    assert!(left.is_empty(), "left in the files: {left:?}");

    // The rest is as it was, for reader and writer.
    for (number, head) in heads.into_iter().enumerate() {
        let entries =
            journal.read(&name(number), Seq::new(oldest[number] - 1), NonZeroUsize::MAX).await.unwrap();
        assert_eq!(entries.len() as u64, head + 1 - oldest[number]);
        for entry in entries {
            assert_eq!(entry.payload.is_redacted(), entry.seq.get() % 2 == 0);
        }
        journal.append(&name(number), Seq::new(head), payload("next")).await.unwrap();
    }
}

#[tokio::test]
async fn the_write_ahead_log_stays_short() {
    let (_kept, dir) = tempdir();
    let mut options = SqliteOptions::default();
    options.wal_bytes = 200_000;
    let journal = SqliteJournal::open(&dir, &options).unwrap();
    let mut tail = journal.tail(&stream("bus"), Seq::START);
    for number in 0..1_500 {
        journal.append(&stream("bus"), Seq::new(number), of_size(1_000)).await.unwrap();
        if number % 2 == 0 {
            tail.next().await.unwrap().unwrap();
        }
        let log = dir.join("journal.db-wal").metadata().unwrap().len();
        assert!(log < 600_000, "{log} bytes after {number} entries");
    }
    // A large entry lengthens it only for as long as needed.
    journal.append(&stream("bus"), Seq::new(1_500), of_size(5_000_000)).await.unwrap();
    for number in 1_501..1_520 {
        journal.append(&stream("bus"), Seq::new(number), of_size(1_000)).await.unwrap();
    }
    let log = dir.join("journal.db-wal").metadata().unwrap().len();
    assert!(log < 600_000, "{log} bytes after a large entry");
}

#[tokio::test]
async fn closing_carries_out_what_was_accepted() {
    for close in [true, false] {
        let (_kept, dir) = tempdir();
        let journal = open(&dir);
        let names: Vec<_> = (0..300).map(|number| stream(&format!("session/{number}"))).collect();
        let mut appends: Vec<_> =
            names.iter().map(|name| journal.append(name, Seq::START, of_size(2_000))).collect();
        for append in &mut appends {
            // Handed in with the first poll, which the runtime does not get to postpone.
            assert!(tokio::task::unconstrained(append).now_or_never().is_none());
        }
        if close {
            journal.close().await;
            for append in appends {
                append.await.unwrap();
            }
        } else {
            drop(appends);
        }
        drop(journal);
        assert!(!dir.join("journal.db-wal").exists(), "the log is left");
        let journal = open(&dir);
        let streams = journal.streams("session/", None, NonZeroUsize::MAX).await.unwrap();
        assert_eq!(streams.len(), names.len());
    }
}

#[tokio::test]
async fn closing_does_not_wait_for_an_append_that_nobody_polls() {
    let (_kept, dir) = tempdir();
    let mut options = SqliteOptions::default();
    options.queue = NonZeroUsize::MIN;
    let journal = SqliteJournal::open(&dir, &options).unwrap();
    let names: Vec<_> = (0..300).map(|number| stream(&format!("session/{number}"))).collect();
    let mut appends: Vec<_> =
        names.iter().map(|name| journal.append(name, Seq::START, of_size(10))).collect();
    for append in &mut appends {
        let _ = append.now_or_never();
    }
    journal.close().await;
}

#[tokio::test]
async fn a_closed_journal_says_so() {
    let (_kept, dir) = tempdir();
    let journal = open(&dir);
    let bus = stream("bus");
    let mut waiting = journal.tail(&bus, Seq::START);
    let mut untouched = journal.tail(&bus, Seq::START);
    assert!(waiting.next().now_or_never().is_none());
    // Its first read is answered before the journal closes, and then it waits.
    journal.head(&bus).await.unwrap();
    journal.close().await;
    journal.close().await;
    check_unavailable(journal.append(&bus, Seq::START, payload("late")).await, "the journal is closed");
    let refused = journal.head(&bus).await.unwrap_err();
    assert_eq!(refused.to_string(), "the journal cannot be read: the journal is closed");
    for tail in [&mut waiting, &mut untouched] {
        assert!(matches!(tail.next().await, Some(Err(ReadError::Unavailable(_)))));
        assert!(tail.next().await.is_none());
    }
}

#[tokio::test]
async fn more_writes_than_the_queue_holds_wait_for_their_turn() {
    let (_kept, dir) = tempdir();
    let mut options = SqliteOptions::default();
    options.queue = NonZeroUsize::MIN;
    let journal = Arc::new(SqliteJournal::open(&dir, &options).unwrap());
    let tasks: Vec<_> = (0..500)
        .map(|number| {
            let journal = Arc::clone(&journal);
            tokio::spawn(async move {
                journal.append(&stream(&format!("session/{number}")), Seq::START, of_size(10)).await
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}
