//! The journal's folder: locked by one gateway at a time. Records are appended to the file, or the whole file is
//! replaced atomically.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{JournalError, JournalOwner, Restored, replay};

/// The journal's file name in its folder.
pub const FILE: &str = "journal";
/// The file name of a new journal until it replaces the old one.
const NEXT: &str = "journal.new";
/// The file that a running gateway locks.
const LOCK: &str = "lock";
/// Factor of growth since the last replacement at which the file is replaced.
const GROWTH: u64 = 4;
/// Size in bytes below which the file is never replaced.
const SMALL: u64 = 256 << 10;

/// A journal's folder, and the file that records are appended to, if there is one.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    owner: JournalOwner,
    _lock: File,
    file: Option<File>,
    bytes: u64,
    /// Size in bytes when the file was new.
    first_bytes: u64,
    /// Whether the file lacks records, so that no other gateway may use it.
    is_incomplete: bool,
}

/// Time that `open` waits for the lock: the kernel releases a killed gateway's lock only after freeing its memory.
const LOCK_WAIT: Duration = Duration::from_secs(2);
/// Time between attempts to take the lock.
const RETRY_EVERY: Duration = Duration::from_millis(20);

impl Journal {
    /// Opens and locks a folder, which is created if missing. Also returns the state that an earlier gateway has left
    /// in it for this one.
    ///
    /// # Errors
    /// Fails when the folder cannot be used, another gateway has locked it, or its journal is damaged or belongs to
    /// another format or device.
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
            // Cut off an incomplete last record: replaying would stop there and miss the records after it.
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

    /// Returns whether records are appended to a file, even if the last attempt failed.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Returns whether there is a file that another gateway could use.
    pub fn is_usable(&self) -> bool {
        self.file.is_some() && !self.is_incomplete
    }

    /// Returns whether the file has grown so much since it was new that it should be replaced.
    pub fn is_large(&self) -> bool {
        self.bytes > SMALL.max(GROWTH.saturating_mul(self.first_bytes))
    }

    /// Appends a record, if there is a file.
    ///
    /// # Errors
    /// Fails when this record or an earlier one cannot be written. The file then lacks records: [`Journal::remove`] it.
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.is_incomplete {
            return Err(io::Error::other("an earlier record could not be written"));
        }
        // True until the record is written completely.
        self.is_incomplete = true;
        file.write_all(record)?;
        self.is_incomplete = false;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Replaces the file atomically; later records are appended to the new one.
    ///
    /// # Errors
    /// Fails when the new file cannot be written; the old one stays unchanged.
    pub fn replace(&mut self, contents: &[u8]) -> io::Result<()> {
        let next = self.folder.join(NEXT);
        let written = self.write_next(&next, contents);
        let file = written.inspect_err(|_| {
            // An incomplete new file would occupy space on a disk that may be full.
            let _ = fs::remove_file(&next);
        })?;
        (self.file, self.is_incomplete) = (Some(file), false);
        (self.bytes, self.first_bytes) = (contents.len() as u64, contents.len() as u64);
        Ok(())
    }

    fn write_next(&self, next: &Path, contents: &[u8]) -> io::Result<File> {
        let mut file = File::create(next)?;
        file.write_all(contents)?;
        // Without this, a machine that dies could leave an empty file. Now it leaves the old or the new one, whose boot
        // id shows that it is outdated.
        file.sync_data()?;
        fs::rename(next, self.path())?;
        Ok(file)
    }

    /// Removes the file; later records are discarded until [`Journal::replace`] writes a new one.
    ///
    /// # Errors
    /// Fails when there is a file and it cannot be removed.
    pub fn remove(&mut self) -> io::Result<()> {
        self.is_incomplete = self.file.is_some();
        match fs::remove_file(self.path()) {
            // A file that this gateway does not use carries another driver's mark, so it does no harm.
            Err(error) if self.is_incomplete && error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.leave();
        Ok(())
    }

    /// Stops using the file without changing it; later records are discarded until [`Journal::replace`] writes a new
    /// one.
    pub fn leave(&mut self) {
        (self.file, self.is_incomplete) = (None, false);
    }
}
