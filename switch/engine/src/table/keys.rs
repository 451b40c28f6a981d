//! The keys of a table's entries, by entry id.

/// The id of a table's entry: an index into the lists of the table's entries. The id does not change while the entry
/// exists.
pub type EntryId = u32;

/// The keys of all entries, one after another in one vector.
pub struct Keys {
    pub words: usize,
    pub all: Vec<u64>,
}

impl Keys {
    /// Returns the key of an entry.
    #[inline]
    pub fn of(&self, id: EntryId) -> &[u64] {
        &self.all[id as usize * self.words..(id as usize + 1) * self.words]
    }

    /// Returns the key of an entry, for keys of one word.
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
