//! A log file that is renamed when it becomes too large (rotation).
//!
//! The files have the names that `simple_switch_grpc` gives them (spdlog's `rotating_file_sink`). With `--log-file
//! ss-log`, lines are written to `ss-log.txt`. A rotation renames this file to `ss-log.1.txt`, the previous
//! `ss-log.1.txt` to `ss-log.2.txt`, and removes the oldest file.
//!
//! Another program, such as logrotate, may rename or remove the file in use. The switch checks the file's name at most
//! once per second when it logs a line, and starts a new file if necessary.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::fileid::FileId;

/// Time between two checks of the file's name. A check at each line would make logging slower by a third.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

/// The rotation of a log file: when it is renamed, and how many renamed files remain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// The size in bytes above which a file is renamed.
    pub max_bytes: u64,
    /// The number of renamed files that remain besides the file in use.
    pub backups: u32,
}

impl Default for Rotation {
    /// Returns the defaults of `simple_switch_grpc`.
    fn default() -> Self {
        Self { max_bytes: 5 << 20, backups: 3 }
    }
}

/// A log file. Lines are appended to the content that it had when it was opened.
pub struct RotatingFile {
    /// The name on the command line, without suffix.
    base: PathBuf,
    rotation: Rotation,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
    id: FileId,
    /// The time of the last check of the file's name.
    last_lookup: Instant,
    /// Whether the name no longer leads to the file in use, and no file of this name can be opened.
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
    /// Opens the file for `base`, and creates it if missing.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn open(base: &Path, rotation: Rotation) -> io::Result<Self> {
        let open = Mutex::new(Open::new(&name(base, 0))?);
        Ok(Self { base: base.to_owned(), rotation, open })
    }

    /// If another program has renamed or removed the file in use, opens the file to which the name leads now. If this
    /// fails, lines are still written to the file in use, and one line on standard error reports the failure.
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

/// Returns the name of a file after it was renamed `times` times.
pub fn name(base: &Path, times: u32) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    if times > 0 {
        name.push(format!(".{times}"));
    }
    name.push(".txt");
    name.into()
}

impl Write for &RotatingFile {
    /// Writes one or more complete lines, after a rotation if they would make the file too large.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let length = lines.len() as u64;
        if open.last_lookup.elapsed() >= LOOKUP_INTERVAL {
            self.follow_name(&mut open);
        }
        if open.bytes > 0 && open.bytes + length > self.rotation.max_bytes {
            match self.rotate() {
                Ok(next) => *open = next,
                // The rotation failed. The lines are more important than the limit on the size, so they are written to
                // the old file. The next attempt follows after `max_bytes` further bytes.
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
