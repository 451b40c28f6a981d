//! A node of the trie, and the places in the trie where prefixes end.

/// The number of bits of a chunk.
pub const STRIDE: u32 = 6;
/// The number of values of a chunk.
pub const CHUNKS: usize = 1 << STRIDE;
/// In place of an entry's id: there is no entry.
pub const NONE: u32 = u32::MAX;

/// A node. An answer is an entry's id plus one, or 0 if no entry matches.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Node {
    /// The bits of the word above the chunk, followed by zeros. The last six bits are the number of bits below the
    /// chunk.
    pub path: u64,
    /// For each value of the chunk, whether it has a child.
    pub forks: u64,
    /// For each value of the chunk, whether it is the last one of a run of equal answers.
    pub runs: u64,
    /// The addresses just before the first child and just before the first answer.
    pub children: usize,
    pub answers: usize,
    /// The answer for keys that leave the path.
    pub inherited: u32,
    /// The first of the entries whose prefixes end in this node; see [`Link`].
    pub own: u32,
}

impl Node {
    /// The path of a node whose chunk has `shift` bits below it in a key's word.
    pub fn path(word: u64, shift: u32) -> u64 {
        (word >> shift & !(CHUNKS as u64 - 1)) << shift | u64::from(shift)
    }

    pub fn shift(&self) -> u32 {
        (self.path & 63) as u32
    }

    /// The bits of a word from the chunk upwards, exclusive or the path's bits. The result is a chunk if the word is on
    /// the path, and larger otherwise.
    pub fn chunk(&self, word: u64) -> u64 {
        (word ^ self.path) >> self.shift()
    }

    /// The place where a word leaves the path: how many bits are below the chunk that contains the first differing bit.
    /// `None` if the word is on the path.
    pub fn fork_shift(&self, word: u64) -> Option<u32> {
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

/// The place where prefixes of a given length end.
#[derive(Clone, Copy)]
pub struct Place {
    pub word: usize,
    /// The number of bits of the word below the chunk.
    pub shift: u32,
    /// The number of bits of the chunk below the end of the prefix.
    pub open_bits: u32,
}

impl Place {
    /// `length` is in bits, at least 1.
    pub fn new(length: usize) -> Place {
        let (word, bit) = ((length - 1) / 64, 63 - (length as u32 - 1) % 64);
        Place { word, shift: bit / STRIDE * STRIDE, open_bits: bit % STRIDE }
    }

    /// By how many bits key word `word` is shifted right to get the bits by which the last node in that word, on the path
    /// to this place, selects its child.
    pub fn shift_in(self, word: usize) -> u32 {
        if self.word > word { 0 } else { self.shift }
    }
}
