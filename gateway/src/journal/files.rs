//! The folder of the journal. At most one gateway locks the folder at a time. Records are appended to the journal's
//! file, or a new file replaces it atomically.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{JournalError, JournalOwner, Restored, replay};

/// Name of the journal's file in its folder.
pub const FILE: &str = "journal";
/// Name of a new journal's file until it replaces the old one.
const NEXT: &str = "journal.new";
/// Name of the file that a running gateway locks.
const LOCK: &str = "lock";
/// The gateway replaces the file when its size exceeds this multiple of `first_bytes`.
const GROWTH: u64 = 4;
/// Size in bytes below which the gateway never replaces the file.
const SMALL: u64 = 256 << 10;

/// The folder of the journal, with the file to which records are appended, if there is one.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    owner: JournalOwner,
    _lock: File,
    file: Option<File>,
    bytes: u64,
    /// Size of the file in bytes when this gateway opened it, or last replaced it.
    first_bytes: u64,
    /// Whether records are missing in the file, so that no other gateway may use it.
    is_incomplete: bool,
}

/// Time that `open` waits for the lock. The kernel releases the lock of a killed gateway only after it has freed the
/// gateway's memory.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Time between two attempts to acquire the lock.
const RETRY_EVERY: Duration = Duration::from_millis(20);

impl Journal {
    /// Opens and locks a folder, and creates it if missing. Also returns the state that an earlier gateway has saved in
    /// the folder since the machine's current boot, if there is one.
    ///
    /// # Errors
    /// Fails when the folder cannot be used, when another gateway has locked it, or when its journal is damaged or
    /// belongs to another format or device.
    pub fn open(folder: &Path, owner: JournalOwner) -> Result<(Self, Option<Restored>), JournalError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| JournalError::File(path, error)
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let lock = folder.join(LOCK);
        let lock_file = File::create(&lock).map_err(failed(&lock))?;
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            match lock_file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(RETRY_EVERY),
                Err(TryLockError::WouldBlock) => return Err(JournalError::Locked(folder.to_owned())),
                Err(TryLockError::Error(error)) => return Err(JournalError::File(lock, error)),
            }
        }
        let path = folder.join(FILE);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(failed(&path))?,
        };
        let restored = replay(&bytes, &owner).map_err(|error| JournalError::Unusable(path.clone(), Box::new(error)))?;
        let mut journal = Self {
            folder: folder.to_owned(),
            owner,
            _lock: lock_file,
            file: None,
            bytes: 0,
            first_bytes: 0,
            is_incomplete: false,
        };
        if let Some(restored) = &restored {
            let file = OpenOptions::new().append(true).open(&path).map_err(failed(&path))?;
            // An incomplete last record is removed. Otherwise a later replay would stop at it and ignore the records
            // that follow.
            file.set_len(restored.end as u64).map_err(failed(&path))?;
            (journal.bytes, journal.first_bytes) = (restored.end as u64, restored.end as u64);
            journal.file = Some(file);
        }
        Ok((journal, restored))
    }

    /// Returns the machine and device to which the journal belongs.
    pub fn owner(&self) -> &JournalOwner {
        &self.owner
    }

    /// Returns the file's path.
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Returns whether there is a file to which the gateway appends records, even if the last record could not be
    /// appended.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns whether there is a complete file, from which another gateway could restore the state.
    pub fn is_usable(&self) -> bool {
        self.file.is_some() && !self.is_incomplete
    }

    /// Returns whether the file has grown so much since it was opened or replaced that the gateway should replace it.
    pub fn is_large(&self) -> bool {
        self.bytes > SMALL.max(GROWTH.saturating_mul(self.first_bytes))
    }

    /// Appends a record, if there is a file.
    ///
    /// # Errors
    /// Fails when this record or an earlier one cannot be written. The file then lacks records, and the caller must
    /// call [`Journal::remove`].
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.is_incomplete {
            return Err(io::Error::other("an earlier record could not be written"));
        }
        // The file is incomplete until the record is written completely.
        self.is_incomplete = true;
        file.write_all(record)?;
        self.is_incomplete = false;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Replaces the file atomically. Later records are appended to the new file.
    ///
    /// # Errors
    /// Fails when the new file cannot be written. The old file then remains unchanged.
    pub fn replace(&mut self, contents: &[u8]) -> io::Result<()> {
        let next = self.folder.join(NEXT);
        let written = self.write_next(&next, contents);
        let file = written.inspect_err(|_| {
            // Removes the incomplete new file, which would occupy space on a disk that may be full.
            let _ = fs::remove_file(&next);
        })?;
        (self.file, self.is_incomplete) = (Some(file), false);
        (self.bytes, self.first_bytes) = (contents.len() as u64, contents.len() as u64);
        Ok(())
    }

    fn write_next(&self, next: &Path, contents: &[u8]) -> io::Result<File> {
        let mut file = File::create(next)?;
        file.write_all(contents)?;
        // Without `sync_data`, a failure of the machine could leave an empty file. With it, either the old or the new
        // file remains, and the boot id in the file shows that the file was written before the failure.
        file.sync_data()?;
        fs::rename(next, self.path())?;
        Ok(file)
    }

    /// Removes the file. Later records are discarded until [`Journal::replace`] writes a new file.
    ///
    /// # Errors
    /// Fails when there is a file and it cannot be removed.
    pub fn remove(&mut self) -> io::Result<()> {
        self.is_incomplete = self.file.is_some();
        match fs::remove_file(self.path()) {
            // A file that this gateway does not use is of an earlier boot, or contains the mark of another driver
            // instance. No gateway restores such a file for the present driver, so a failure to remove it does no harm.
            Err(error) if self.is_incomplete && error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.leave();
        Ok(())
    }

    /// Stops using the file without changing it. Later records are discarded until [`Journal::replace`] writes a new
    /// file.
    pub fn leave(&mut self) {
        (self.file, self.is_incomplete) = (None, false);
    }
}
