//! What went wrong, worded for whoever repairs it: what is wrong, what would be right, what to run.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_WRITE};

use super::file::Site;
use crate::BackendError;

/// Why a journal could not be opened. The variants are named for what there is to repair.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be created, entered or locked.
    #[error(
        "the data directory '{}' cannot be used: it must be a directory that this user may read and write",
        dir.display()
    )]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process serves the directory.
    #[error(
        "the data directory '{}' is in use by {}: stop that process, or give this one another data directory",
        dir.display(),
        process(*holder)
    )]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// The process that holds it, if it has left its id.
        holder: Option<u32>,
    },
    /// The file was written by a later release.
    #[error(
        "'{}' has journal format {found}, and this release knows formats up to {known}: \
         run the release that wrote it, or a later one",
        file.display()
    )]
    NewerFormat {
        /// The database file.
        file: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this release reads.
        known: i64,
    },
    /// The file is something else than a journal.
    #[error(
        "'{}' is not a journal ({what}): move it away to begin an empty journal, or restore a backup in its place",
        file.display()
    )]
    NotAJournal {
        /// The database file.
        file: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The file is a journal, and parts of it are unreadable.
    #[error(
        "the journal '{}' is damaged: {detail}; restore a backup, or save what is readable with \
         `sqlite3 journal.db .recover | sqlite3 recovered.db`",
        file.display()
    )]
    Damaged {
        /// The database file.
        file: PathBuf,
        /// What the check found.
        detail: String,
    },
    /// The file may be read only.
    #[error(
        "the journal '{}' cannot be written: it, the directory and the file system must be writable by this user; \
         see `ls -la {}` and `mount`",
        file.display(),
        file.parent().unwrap_or(file).display()
    )]
    ReadOnly {
        /// The database file.
        file: PathBuf,
    },
    /// There is no room for the journal's files.
    #[error("no space is left for the journal '{}': free some; see `df -h {}`", file.display(),
        file.parent().unwrap_or(file).display())]
    NoSpace {
        /// The database file.
        file: PathBuf,
    },
    /// The system failed in another way.
    #[error("the journal '{}' cannot be opened", file.display())]
    Failed {
        /// The database file.
        file: PathBuf,
        /// What the system or SQLite said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn process(holder: Option<u32>) -> String {
    holder.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}

impl OpenError {
    /// Sorts what SQLite reported while the file was being opened.
    pub(super) fn from_sqlite(file: &Path, error: rusqlite::Error) -> Self {
        let file = file.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => {
                Self::NotAJournal { file, what: "it does not begin like an SQLite database" }
            }
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { file, detail: error.to_string() },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::ReadOnly { file }
            }
            Some(ErrorCode::DiskFull) => Self::NoSpace { file },
            _ => Self::Failed { file, source: Box::new(error) },
        }
    }

    pub(super) fn failed(file: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed { file: file.to_owned(), source: source.into() }
    }
}

/// Words a failed write.
pub(super) fn write_fault(site: &Site, error: rusqlite::Error) -> BackendError {
    let file = site.file.display();
    let message = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => match site.max_bytes {
            Some(max) => format!(
                "'{file}' may not grow: the disk is full, or the file has reached its limit of {max} bytes; \
                 free space or raise the limit, and appends go on"
            ),
            None => format!("no space is left for '{file}': free some, and appends go on by themselves"),
        },
        Some(ErrorCode::ReadOnly) => {
            format!(
                "'{file}' has become read-only: make its file system writable, and appends go on by themselves"
            )
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("another process writes to '{file}': end it (a `sqlite3` shell in a transaction?)")
        }
        _ => return read_fault(site, error),
    };
    BackendError::caused(message, error)
}

/// Words a failed read.
pub(super) fn read_fault(site: &Site, error: rusqlite::Error) -> BackendError {
    let file = site.file.display();
    let message = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => format!(
            "'{file}' is damaged: stop the server, see `sqlite3 '{file}' 'pragma integrity_check'`, restore a backup"
        ),
        Some(ErrorCode::SystemIoFailure) => format!(
            "the system failed to read or write '{file}' ({error}): see `dmesg` and the disk's health; \
             the journal tries again with every request"
        ),
        Some(ErrorCode::OutOfMemory) => format!("no memory is left to work on '{file}'"),
        _ => format!("SQLite failed on '{file}' ({error})"),
    };
    BackendError::caused(message, error)
}

/// Whether a `COMMIT` that failed with `error` may have left its commit record in the write-ahead log.
///
/// The record is the last thing that a commit writes. If writing failed, it is not there; if a later step did, such as
/// the sync, the next process to open the file could find it and take it for valid.
pub(super) fn may_have_committed(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_extended_error_code();
    !matches!(code, Some(SQLITE_FULL | SQLITE_IOERR_WRITE))
}

/// Whether `error` may concern one write of a group and not the others.
pub(super) fn may_concern_one(error: &rusqlite::Error) -> bool {
    !matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::SystemIoFailure
                | ErrorCode::ReadOnly
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::CannotOpen
        )
    )
}
