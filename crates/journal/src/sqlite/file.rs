//! The database file: how it is laid out, opened and checked.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::SqliteOptions;
use super::fault::OpenError;

/// Name of the database file in the data directory.
const FILE: &str = "journal.db";

/// Marks an SQLite file as a journal: "SWBD", in the header field that SQLite keeps for this.
const APPLICATION_ID: i64 = 0x5357_4244;

/// The format that this release writes, and the newest that it reads.
const FORMAT: i64 = 1;

/// SQLite's own default, named because sizes are given to it in pages.
const PAGE_BYTES: u64 = 4_096;

/// How long a statement waits for another process, such as a `sqlite3` shell in the middle of a write.
const PATIENCE: Duration = Duration::from_secs(5);

/// Entries lie in the order in which they came, so that a group of appends fills few pages, whatever its streams; only the
/// index has a place per stream. A stream keeps its row when all its entries are trimmed, for its numbers go on from
/// `trimmed`. `meta.fence` counts the commits whose fate had to be settled.
const LAYOUT: &str = "
    begin immediate;
    create table meta (key text primary key, value integer not null) strict, without rowid;
    create table streams (
        id integer primary key,
        name text not null unique,
        trimmed integer not null default 0
    ) strict;
    create table entries (
        position integer primary key,
        stream integer not null,
        seq integer not null,
        payload text not null
    ) strict;
    create unique index entries_by_stream on entries (stream, seq);
    create table snapshots (
        stream integer primary key,
        seq integer not null,
        state text not null
    ) strict;
    create view journal as
        select streams.name as stream, entries.seq as seq, entries.payload as payload
        from entries join streams on streams.id = entries.stream;
    insert into meta (key, value) values ('format_version', 1), ('fence', 0);
    pragma application_id = 0x53574244;
    commit;";

/// Where a journal lies, for those who open it again or word its faults.
#[derive(Debug, Clone)]
pub(super) struct Site {
    /// The database file.
    pub(super) file: PathBuf,
    /// See [`SqliteOptions::max_bytes`].
    pub(super) max_bytes: Option<u64>,
}

impl Site {
    pub(super) fn new(dir: &Path, options: &SqliteOptions) -> Self {
        Self { file: dir.join(FILE), max_bytes: options.max_bytes }
    }
}

/// Opens the file for writing, creates its tables if it is new, and checks that this release can serve it.
pub(super) fn open(site: &Site, options: &SqliteOptions) -> Result<Connection, OpenError> {
    create(&site.file)?;
    let connection = connect(&site.file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let sorted = |error| OpenError::from_sqlite(&site.file, error);
    if connection.is_readonly("main").map_err(sorted)? {
        return Err(OpenError::ReadOnly { file: site.file.clone() });
    }
    // Before anything is set: the file may be somebody else's.
    let content = inspect(&connection).map_err(sorted)?;
    match content {
        Content::Nothing | Content::Journal => {}
        Content::Foreign => {
            let what = "it is another program's SQLite database";
            return Err(OpenError::NotAJournal { file: site.file.clone(), what });
        }
    }
    configure(&connection, site, options)?;
    if matches!(content, Content::Nothing) {
        connection.execute_batch(LAYOUT).map_err(sorted)?;
    }
    check_format(&connection, site)?;
    // A redaction that a crash interrupted may have left its text in the log.
    connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).map_err(sorted)?;
    check_pages(&connection, site, options.check_bytes)?;
    Ok(connection)
}

/// Opens the file for one reader.
pub(super) fn open_for_reading(site: &Site) -> Result<Connection, OpenError> {
    let connection = connect(&site.file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection
        .execute_batch("pragma cache_size = -4096; pragma cell_size_check = on; pragma trusted_schema = off")
        .map_err(|error| OpenError::from_sqlite(&site.file, error))?;
    Ok(connection)
}

/// Creates an empty file that only its owner may read; SQLite gives the files beside it the same permissions.
fn create(file: &Path) -> Result<(), OpenError> {
    let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(file);
    match opened {
        Ok(_) => Ok(()),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                OpenError::ReadOnly { file: file.to_owned() }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                OpenError::NoSpace { file: file.to_owned() }
            }
            io::ErrorKind::IsADirectory => {
                OpenError::NotAJournal { file: file.to_owned(), what: "it is a directory" }
            }
            _ => OpenError::failed(file, error),
        }),
    }
}

fn connect(file: &Path, mode: OpenFlags) -> Result<Connection, OpenError> {
    // Each connection stays with one thread, which spares SQLite its own locks.
    let connection = Connection::open_with_flags(file, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = connection.map_err(|error| OpenError::from_sqlite(file, error))?;
    connection.busy_timeout(PATIENCE).map_err(|error| OpenError::from_sqlite(file, error))?;
    Ok(connection)
}

/// What a file holds that may or may not be ours.
enum Content {
    Nothing,
    Journal,
    Foreign,
}

fn inspect(connection: &Connection) -> rusqlite::Result<Content> {
    let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let objects: i64 = connection.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, objects) {
        (APPLICATION_ID, _) => Content::Journal,
        (0, 0) => Content::Nothing,
        _ => Content::Foreign,
    })
}

fn configure(connection: &Connection, site: &Site, options: &SqliteOptions) -> Result<(), OpenError> {
    let sorted = |error| OpenError::from_sqlite(&site.file, error);
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).map_err(sorted)?;
    if mode != "wal" {
        let reason =
            "the file system cannot share memory between connections: use a local disk, not a network mount";
        return Err(OpenError::failed(&site.file, reason));
    }
    connection
        .execute_batch(&format!(
            "pragma synchronous = full;
             -- The writer does it once replies are out.
             pragma wal_autocheckpoint = 0;
             pragma journal_size_limit = {};
             pragma secure_delete = fast;
             pragma cache_size = -16384;
             pragma cell_size_check = on;
             pragma trusted_schema = off;",
            options.wal_bytes.saturating_mul(2).min(i64::MAX.unsigned_abs()),
        ))
        .map_err(sorted)?;
    if let Some(max_bytes) = site.max_bytes {
        // SQLite knows no more pages than this.
        let pages = (max_bytes / PAGE_BYTES).clamp(1, u64::from(u32::MAX - 1));
        connection.query_row(&format!("pragma max_page_count = {pages}"), [], |_| Ok(())).map_err(sorted)?;
    }
    Ok(())
}

fn check_format(connection: &Connection, site: &Site) -> Result<(), OpenError> {
    let found = connection
        .query_row("select value from meta where key = 'format_version'", [], |row| row.get(0))
        .map_err(|error| OpenError::Damaged {
            file: site.file.clone(),
            detail: format!("its format version cannot be read ({error})"),
        })?;
    if found > FORMAT {
        return Err(OpenError::NewerFormat { file: site.file.clone(), found, known: FORMAT });
    }
    Ok(())
}

/// Looks for damaged pages if there are few enough of them. That the file is as long as it should be, SQLite checks anyway.
fn check_pages(connection: &Connection, site: &Site, check_bytes: u64) -> Result<(), OpenError> {
    let len = site.file.metadata().map_err(|error| OpenError::failed(&site.file, error))?.len();
    if len > check_bytes {
        return Ok(());
    }
    let verdict: String = connection
        .query_row("pragma quick_check(1)", [], |row| row.get(0))
        .map_err(|error| OpenError::from_sqlite(&site.file, error))?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(OpenError::Damaged { file: site.file.clone(), detail: verdict.replace('\n', ": ") })
    }
}
