//! Identifies the file that a name leads to. Another program, such as logrotate, may rename or remove a file while it
//! is written.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode of a file. No other file has the same while this one is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The identity of the file that the metadata describes.
    pub fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }

    /// Whether the name still leads to this file.
    pub fn is_at(self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| Self::of(&metadata) == self)
    }
}
