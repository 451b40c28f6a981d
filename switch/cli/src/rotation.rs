//! A log file that is put aside when it has become too large, as `simple_switch_grpc` does it: `switch.log` becomes
//! `switch.1.log`, that one `switch.2.log`, and the oldest goes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// When a log file is put aside, and how many are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes that a file may have.
    pub most_bytes: u64,
    /// Files that are kept besides the one in use.
    pub backups: u32,
}

impl Default for Rotation {
    /// That of `simple_switch_grpc`.
    fn default() -> Self {
        Self { most_bytes: 5 << 20, backups: 3 }
    }
}

/// A file for log lines. What was in it when it was opened stays.
pub struct RotatingFile {
    path: PathBuf,
    rotation: Rotation,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes })
    }
}

impl RotatingFile {
    /// Opens the file, or begins one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(path: &Path, rotation: Rotation) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), rotation, open: Mutex::new(Open::new(path)?) })
    }

    /// The name of a file that was put aside so many times.
    fn backup(&self, number: u32) -> PathBuf {
        let Some(extension) = self.path.extension() else {
            return self.path.with_extension(number.to_string());
        };
        let mut last = std::ffi::OsString::from(format!("{number}."));
        last.push(extension);
        self.path.with_extension(last)
    }

    fn rotate(&self) -> io::Result<Open> {
        for number in (1..self.rotation.backups).rev() {
            if let Err(error) = fs::rename(self.backup(number), self.backup(number + 1))
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
        }
        if self.rotation.backups == 0 {
            fs::remove_file(&self.path)?;
        } else {
            fs::rename(&self.path, self.backup(1))?;
        }
        Open::new(&self.path)
    }
}

impl Write for &RotatingFile {
    /// Writes one or more whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let length = lines.len() as u64;
        if open.bytes > 0 && open.bytes + length > self.rotation.most_bytes {
            match self.rotate() {
                Ok(next) => *open = next,
                // The lines matter more than the size. It is tried again when as much has come again.
                Err(_) => open.bytes = 0,
            }
        }
        open.bytes += length;
        open.file.write_all(lines)?;
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
