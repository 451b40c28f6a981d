//! A node of the trie, and where in the trie prefixes end.

/// Bits of a chunk.
pub const STRIDE: u32 = 6;
/// The values of a chunk.
pub const CHUNKS: usize = 1 << STRIDE;
/// In place of an entry's id: there is none.
pub const NONE: u32 = u32::MAX;

/// A node. What answers is an entry's id plus one; 0: nothing does.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Node {
    /// The bits of the word above the chunk; then zeros, and in the last six bits how many bits of the word are below the chunk.
    pub path: u64,
    /// By chunk: there is a child.
    pub forks: u64,
    /// By chunk: the last one that is answered as those before it.
    pub runs: u64,
    /// Addresses of what is in front of the first child, and of the first answer.
    pub children: usize,
    pub answers: usize,
    /// What answers those that leave the path.
    pub inherited: u32,
    /// First of the entries that end here; see [`Link`].
    pub own: u32,
}

impl Node {
    /// At the chunk of a key's word with so many bits below it.
    pub fn path(word: u64, shift: u32) -> u64 {
        (word >> shift & !(CHUNKS as u64 - 1)) << shift | u64::from(shift)
    }

    pub fn shift(&self) -> u32 {
        (self.path & 63) as u32
    }

    /// The bits of a word from the chunk upwards, without those of the path: a chunk, if the word is on the path.
    pub fn chunk(&self, word: u64) -> u64 {
        (word ^ self.path) >> self.shift()
    }

    /// Where a word leaves the path: bits below the chunk that has the first bit that differs.
    pub fn leaves(&self, word: u64) -> Option<u32> {
        let differ = self.chunk(word) & !(CHUNKS as u64 - 1);
        (differ != 0).then(|| (63 - (differ << self.shift()).leading_zeros()) / STRIDE * STRIDE)
    }

    pub fn has(&self, chunk: u64) -> bool {
        self.forks >> chunk & 1 == 1
    }

    pub fn is_vacant(&self) -> bool {
        self.forks == 0 && self.own == NONE
    }
}

/// Where prefixes of a length end.
#[derive(Clone, Copy)]
pub struct Place {
    pub word: usize,
    /// Bits of the word below the chunk.
    pub shift: u32,
    /// Bits of the chunk that the prefix leaves open.
    pub open: u32,
}

impl Place {
    /// `length`: at least 1.
    pub fn new(length: usize) -> Place {
        let (word, bit) = ((length - 1) / 64, 63 - (length as u32 - 1) % 64);
        Place { word, shift: bit / STRIDE * STRIDE, open: bit % STRIDE }
    }

    /// The chunk that paths to it are cut at in a word.
    pub fn shift_in(self, word: usize) -> u32 {
        if self.word > word { 0 } else { self.shift }
    }
}
