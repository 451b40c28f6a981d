//! Which file a name leads to. Another program, such as logrotate, may rename or remove a file that is being written.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode of a file, which no other file has while this one is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file that the metadata describes.
    pub fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }

    /// Whether the name still leads to this file.
    pub fn is_at(self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|found| Self::of(&found) == self)
    }
}
