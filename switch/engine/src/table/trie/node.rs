//! The nodes of the trie, and the places in the trie where prefixes end.

/// The number of bits that a node examines, which form its chunk.
pub const STRIDE: u32 = 6;
/// The number of values that a chunk can have.
pub const CHUNKS: usize = 1 << STRIDE;
/// The value that is stored instead of an entry's id if there is no entry.
pub const NONE: u32 = u32::MAX;

/// A node of the trie. An answer is the id of an entry plus one, or 0 if no entry matches.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Node {
    /// The bits of the word above the chunk, followed by zeros. The last six bits contain the number of bits below the
    /// chunk.
    pub path: u64,
    /// A bitmap with a bit for each value of the chunk. The bit is set if the value has a child.
    pub forks: u64,
    /// A bitmap with a bit for each value of the chunk. The bit is set for the last value of each run of equal answers.
    pub runs: u64,
    /// The addresses of the memory directly before the first child (`children`) and before the first answer
    /// (`answers`). The number of set bits from a chunk's bit upwards is at least 1, so the first item has the number
    /// 1.
    pub children: usize,
    pub answers: usize,
    /// The answer for keys that are not on the path.
    pub inherited: u32,
    /// The first of the entries whose prefixes end in this node, or `NONE`. These entries form a list by [`Link`].
    pub own: u32,
}

impl Node {
    /// Returns the path of a node for the word `word` of a key. `shift` is the number of bits below the node's chunk.
    pub fn path(word: u64, shift: u32) -> u64 {
        (word >> shift & !(CHUNKS as u64 - 1)) << shift | u64::from(shift)
    }

    pub fn shift(&self) -> u32 {
        (self.path & 63) as u32
    }

    /// Returns the bits of a word from the chunk upwards, combined with the path's bits by an exclusive or. If the word
    /// is on the path, the result is the chunk's value; otherwise, the result is larger than any chunk's value.
    pub fn chunk(&self, word: u64) -> u64 {
        (word ^ self.path) >> self.shift()
    }

    /// Returns at which chunk a word leaves the path, as the number of bits below the chunk with the first differing
    /// bit. Returns `None` if the word is on the path.
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

/// The place in the trie where prefixes of a given length end.
#[derive(Clone, Copy)]
pub struct Place {
    pub word: usize,
    /// The number of bits of the word below the chunk.
    pub shift: u32,
    /// The number of bits of the chunk after the end of the prefix.
    pub open_bits: u32,
}

impl Place {
    /// Returns the place of a prefix of `length` bits. The length must be at least 1.
    pub fn new(length: usize) -> Place {
        let (word, bit) = ((length - 1) / 64, 63 - (length as u32 - 1) % 64);
        Place { word, shift: bit / STRIDE * STRIDE, open_bits: bit % STRIDE }
    }

    /// Returns the number of bits in the key's word `word` below the last chunk that a lookup examines before it ends
    /// at this place. In the place's own word this is `shift`. Earlier words are examined to the last bit, so it is 0.
    pub fn shift_in(self, word: usize) -> u32 {
        if self.word > word { 0 } else { self.shift }
    }
}
