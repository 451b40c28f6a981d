//! A log file that is renamed when it becomes too large.
//!
//! Files are named as `simple_switch_grpc` names them (spdlog's `rotating_file_sink`). With `--log-file ss-log`, lines
//! go to `ss-log.txt`, which is renamed to `ss-log.1.txt`, that one to `ss-log.2.txt`, and the oldest file is removed.
//! If another program, such as logrotate, renames or removes the file in use, the first line that is logged a second
//! or more after the last check of the name starts a new file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::fileid::FileId;

/// How often the file's name is looked up, which takes a third of the time of a line.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

/// When a log file is renamed, and how many renamed files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The size in bytes above which a file is renamed.
    pub max_bytes: u64,
    /// The number of renamed files that are kept besides the one in use.
    pub backups: u32,
}

impl Default for Rotation {
    /// The defaults of `simple_switch_grpc`.
    fn default() -> Self {
        Self { max_bytes: 5 << 20, backups: 3 }
    }
}

/// A log file. Lines are appended to what it contained when it was opened.
pub struct RotatingFile {
    /// The name as the flag gives it.
    base: PathBuf,
    rotation: Rotation,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
    id: FileId,
    /// When the name was last looked up.
    last_lookup: Instant,
    /// Whether the file's name leads to another file, which cannot be opened.
    is_cut_off: bool,
}

impl Open {
    fn new(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let metadata = file.metadata()?;
        Ok(Self {
            file,
            bytes: metadata.len(),
            id: FileId::of(&metadata),
            last_lookup: Instant::now(),
            is_cut_off: false,
        })
    }
}

impl RotatingFile {
    /// Opens the file for `base`, or creates it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn open(base: &Path, rotation: Rotation) -> io::Result<Self> {
        let open = Mutex::new(Open::new(&name(base, 0))?);
        Ok(Self { base: base.to_owned(), rotation, open })
    }

    /// Opens the file that the name leads to now, if another program has renamed or removed the file in use. While that
    /// fails, lines continue to go to the file in use, and standard error gets one line about the failure.
    pub fn follow(&self) {
        self.follow_name(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn follow_name(&self, open: &mut Open) {
        let path = name(&self.base, 0);
        open.last_lookup = Instant::now();
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

/// The name of a file that was renamed this many times.
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
        if open.last_lookup.elapsed() >= LOOKUP_INTERVAL {
            self.follow_name(&mut open);
        }
        if open.bytes > 0 && open.bytes + length > self.rotation.max_bytes {
            match self.rotate() {
                Ok(next) => *open = next,
                // The lines matter more than the file's size. Renaming is tried again after as many bytes.
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
