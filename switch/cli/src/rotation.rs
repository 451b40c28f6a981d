//! A log file that is renamed when it has become too large, named as `simple_switch_grpc` names it (spdlog's
//! `rotating_file_sink`): of `--log-file ss-log`, `ss-log.txt` is written and becomes `ss-log.1.txt`, that one `ss-log.2.txt`,
//! and the oldest goes. When another program, such as logrotate, renames or removes the file in use, a line of the next
//! second begins a new one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::fileid::FileId;

/// How often the file's name is looked up: that takes a third of a line's time.
const LOOK: Duration = Duration::from_secs(1);

/// When a log file is renamed, and how many renamed ones stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes that a file may have.
    pub most_bytes: u64,
    /// Renamed files that stay beside the one in use.
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
    /// As the flag gives it.
    base: PathBuf,
    rotation: Rotation,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
    id: FileId,
    /// When the name was last known to lead to this file, or could not be opened anew.
    looked: Instant,
    /// The file's name leads to another file, which cannot be opened.
    is_cut_off: bool,
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let found = file.metadata()?;
        Ok(Self { file, bytes: found.len(), id: FileId::of(&found), looked: Instant::now(), is_cut_off: false })
    }
}

impl RotatingFile {
    /// Opens the file that is written for `base`, or begins one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn open(base: &Path, rotation: Rotation) -> io::Result<Self> {
        let open = Mutex::new(Open::new(&name(base, 0))?);
        Ok(Self { base: base.to_owned(), rotation, open })
    }

    /// Opens what the file's name leads to now, where another program has renamed or removed the file in use. While that
    /// fails, lines go on into the file in use, and standard error gets one line about it.
    pub fn follow(&self) {
        self.follow_name(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn follow_name(&self, open: &mut Open) {
        let path = name(&self.base, 0);
        open.looked = Instant::now();
        if open.id.is_at(&path) {
            open.is_cut_off = false;
            return;
        }
        match Open::new(&path) {
            Ok(next) => *open = next,
            Err(error) if !open.is_cut_off => {
                open.is_cut_off = true;
                let path = path.display();
                let _ = writeln!(io::stderr(), "sluice-switch: cannot open the log file {path} anew: {error}");
            }
            Err(_) => {}
        }
    }

    fn rotate(&self) -> io::Result<Open> {
        for number in (1..self.rotation.backups).rev() {
            if let Err(error) = fs::rename(name(&self.base, number), name(&self.base, number + 1))
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
        }
        let current = name(&self.base, 0);
        if self.rotation.backups == 0 {
            fs::remove_file(&current)?;
        } else {
            fs::rename(&current, name(&self.base, 1))?;
        }
        Open::new(&current)
    }
}

/// The name of a file that was renamed so many times.
pub fn name(base: &Path, times: u32) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    if times > 0 {
        name.push(format!(".{times}"));
    }
    name.push(".txt");
    name.into()
}

impl Write for &RotatingFile {
    /// Writes one or more whole lines.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let length = lines.len() as u64;
        if open.looked.elapsed() >= LOOK {
            self.follow_name(&mut open);
        }
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
