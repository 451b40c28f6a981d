//! Determines whether a name still leads to the same file. Another program, such as logrotate, may rename or remove a
//! file while the switch writes it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device and inode of a file. While the file is open, no other file has the same pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the identity of the file that the metadata describe.
    pub fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }

    /// Returns whether the name still leads to this file.
    pub fn is_at(self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| Self::of(&metadata) == self)
    }
}
