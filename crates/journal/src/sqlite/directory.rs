//! The data directory: created for its owner alone, and locked while a process serves it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::fault::OpenError;

/// Name of the file whose lock says who owns the directory. It stays when the owner ends: the lock counts, not the file.
const LOCK_FILE: &str = "lock";

/// A directory that no other process serves for as long as this value lives.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Unlocked by the kernel when it is closed, also if the process is killed.
    _lock: File,
}

impl Directory {
    /// Creates `path` if it is missing and locks it.
    pub(super) fn lock(path: &Path) -> Result<Self, OpenError> {
        let unusable = |source| OpenError::Directory { dir: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
        // An absolute path, so that a message can be acted upon from any working directory.
        let path_absolute = path.canonicalize().map_err(unusable)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path_absolute.join(LOCK_FILE))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(OpenError::InUse { dir: path_absolute, holder: holder(&mut lock) });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        sign(&mut lock).map_err(unusable)?;
        Ok(Self { path: path_absolute, _lock: lock })
    }

    /// The absolute path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// Writes our process id into the lock file, for the message that a second process shows.
fn sign(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

/// The process id in the lock file; `None` if its owner has not written it yet.
fn holder(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
