//! The keys of a table's entries, by entry.

/// The index of an entry; it does not change while the entry exists.
pub type EntryId = u32;

/// The entries' keys, one after the other.
pub struct Keys {
    pub words: usize,
    pub all: Vec<u64>,
}

impl Keys {
    /// The key of an entry.
    #[inline]
    pub fn of(&self, id: EntryId) -> &[u64] {
        &self.all[id as usize * self.words..(id as usize + 1) * self.words]
    }

    /// The key of an entry, if keys have one word.
    #[inline]
    pub fn word(&self, id: EntryId) -> u64 {
        self.all[id as usize]
    }

    pub fn set(&mut self, id: EntryId, key: &[u64]) {
        let first = id as usize * self.words;
        self.all.resize(self.all.len().max(first + self.words), 0);
        self.all[first..first + self.words].copy_from_slice(key);
    }
}
