//! The folder of a journal: one gateway at a time, records appended, the whole file replaced at once.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Here, JournalError, Restored, replay};

/// The journal's name in its folder.
pub const FILE: &str = "journal";
/// What becomes of it when it is replaced.
const NEXT: &str = "journal.new";
/// Locked while a gateway runs.
const LOCK: &str = "lock";
/// A file is replaced when it is so many times as large as when it was new.
const GROWTH: u64 = 4;
/// A file below this size is not replaced, in bytes.
const SMALL: u64 = 256 << 10;

/// The file that records go to, if they go to any.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    here: Here,
    _lock: File,
    file: Option<File>,
    bytes: u64,
    /// Of the file when it was new.
    first_bytes: u64,
    /// The file says what is not so, and is not to be found by another gateway.
    is_wrong: bool,
}

/// How long `open` waits for the lock: the kernel releases a killed gateway's only when it has freed its memory.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const RETRY_EVERY: Duration = Duration::from_millis(20);

impl Journal {
    /// Takes a folder, which is made if need be; with what an earlier gateway has left in it for this one.
    ///
    /// # Errors
    /// When the folder cannot be used, another gateway has it, or its journal is damaged or of another format or device.
    pub fn open(folder: &Path, here: Here) -> Result<(Self, Option<Restored>), JournalError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| JournalError::File(path, error)
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let lock = folder.join(LOCK);
        let lock_file = File::create(&lock).map_err(failed(&lock))?;
        let patience = Instant::now() + LOCK_WAIT;
        loop {
            match lock_file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < patience => sleep(RETRY_EVERY),
                Err(TryLockError::WouldBlock) => return Err(JournalError::Taken(folder.to_owned())),
                Err(TryLockError::Error(error)) => return Err(JournalError::File(lock, error)),
            }
        }
        let path = folder.join(FILE);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(failed(&path))?,
        };
        let restored = replay(&bytes, &here).map_err(|error| JournalError::Unusable(path.clone(), Box::new(error)))?;
        let mut journal = Self {
            folder: folder.to_owned(),
            here,
            _lock: lock_file,
            file: None,
            bytes: 0,
            first_bytes: 0,
            is_wrong: false,
        };
        if let Some(restored) = &restored {
            let file = OpenOptions::new().append(true).open(&path).map_err(failed(&path))?;
            // Behind a record that was cut nothing would be found again.
            file.set_len(restored.end as u64).map_err(failed(&path))?;
            (journal.bytes, journal.first_bytes) = (restored.end as u64, restored.end as u64);
            journal.file = Some(file);
        }
        Ok((journal, restored))
    }

    /// Whose file it is.
    pub fn here(&self) -> &Here {
        &self.here
    }

    /// The file's path.
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Whether there is a file that records go to, or should have gone to.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether another gateway would find in the file what is so.
    pub fn is_kept(&self) -> bool {
        self.file.is_some() && !self.is_wrong
    }

    /// Whether the file is so much larger than when it was new that it is to be replaced.
    pub fn is_large(&self) -> bool {
        self.bytes > SMALL.max(GROWTH.saturating_mul(self.first_bytes))
    }

    /// Appends a record, if records go to a file.
    ///
    /// # Errors
    /// When it cannot be written, or an earlier one could not. The file then says what is not so: [`Journal::remove`] it.
    pub fn append(&mut self, record: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.is_wrong {
            return Err(io::Error::other("an earlier record could not be written"));
        }
        // Until the end of this.
        self.is_wrong = true;
        file.write_all(record)?;
        self.is_wrong = false;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Replaces the file at once; records then go to the new one.
    ///
    /// # Errors
    /// When it cannot be written; the old one is as it was.
    pub fn replace(&mut self, contents: &[u8]) -> io::Result<()> {
        let next = self.folder.join(NEXT);
        let written = self.write_next(&next, contents);
        let file = written.inspect_err(|_| {
            // It would take room of what has none.
            let _ = fs::remove_file(&next);
        })?;
        (self.file, self.is_wrong) = (Some(file), false);
        (self.bytes, self.first_bytes) = (contents.len() as u64, contents.len() as u64);
        Ok(())
    }

    fn write_next(&self, next: &Path, contents: &[u8]) -> io::Result<File> {
        let mut file = File::create(next)?;
        file.write_all(contents)?;
        // A machine that dies leaves the old file or the new one, not an empty one: its boot then says that it is out of date.
        file.sync_data()?;
        fs::rename(next, self.path())?;
        Ok(file)
    }

    /// Removes the file; records go nowhere until it is replaced.
    ///
    /// # Errors
    /// When there is a file and it cannot be removed.
    pub fn remove(&mut self) -> io::Result<()> {
        self.is_wrong = self.file.is_some();
        match fs::remove_file(self.path()) {
            // One that is left alone has the mark of another driver.
            Err(error) if self.is_wrong && error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.leave();
        Ok(())
    }

    /// Leaves the file as it is; records go nowhere until it is replaced.
    pub fn leave(&mut self) {
        (self.file, self.is_wrong) = (None, false);
    }
}
