//! Longest-prefix match by a compressed multibit trie with six bits for each node.
//!
//! A key is a string of bits, which are divided into words; the most significant word is first. A node examines six
//! bits of a word, which are its *chunk*. The first chunk of a word has only four bits. The trie has nodes only where
//! keys fork or prefixes end. A node's `path` contains the bits of the word above the chunk; a key that differs in
//! these bits does not belong to the node's subtree. A path does not extend over several words. If a branch continues
//! in the next word, the branch has a node at the end of the current word.
//!
//! Prefixes end within chunks. A node stores the answers for all values of its chunk, including the answers inherited
//! from shorter prefixes, as runs of equal answers. Therefore the answer to a lookup is in the first node at which the
//! lookup cannot descend further. Children and runs are stored in arrays without gaps, those of the highest chunk
//! first. They are found by counting bits, like in tree bitmaps (Eatherton, Varghese, Dittia: "Tree bitmap", ACM CCR
//! 34(2), 2004) and Poptries (Asai, Ohara: "Poptrie", SIGCOMM 2015). Machine code reads this structure too
//! ([`crate::native`]).

mod change;
mod node;
#[cfg(test)]
mod tests;

use self::node::{CHUNKS, NONE, Place};
use super::keys::EntryId;
use super::pool::Pool;

pub use self::node::{Node, STRIDE};

/// The maximum number of words of a key in a trie. Tables with longer keys use tuple space search.
pub const MAX_WORDS: usize = 64;

/// The state of an entry in the trie. The index of a link is the entry's id.
#[derive(Clone, Copy)]
struct Link {
    /// The next entry whose prefix ends in the same node; `NONE` after the last entry.
    next: u32,
    /// The length of the entry's prefix in bits.
    length: u16,
    /// The smallest value of the node's chunk that the prefix covers.
    first: u8,
}

/// The index of a longest-prefix-match table. It finds the ids of the table's entries by their prefixes.
pub struct Trie {
    /// The indices of a key's words, most significant word first.
    order: Vec<usize>,
    /// All nodes. The root is the first node.
    nodes: Pool<Node>,
    answers: Pool<u32>,
    links: Vec<Link>,
    /// The answer of the prefix of length 0: the id of its entry plus one, or 0 if there is no such entry.
    all: u32,
}

impl Trie {
    /// Creates an empty trie. `order` contains the indices of the key's words, most significant word first.
    pub fn new(order: Vec<usize>) -> Trie {
        let mut trie = Trie { order, nodes: Pool::new(), answers: Pool::new(), links: Vec::new(), all: 0 };
        trie.nodes.take(1);
        let root = trie.node(Node::path(0, 64 / STRIDE * STRIDE), 0);
        trie.nodes.items_mut()[0] = root;
        trie
    }

    /// Returns the address of the root, which changes only when entries are added or removed.
    pub fn root(&self) -> usize {
        self.nodes.first()
    }

    /// Returns the length in bits of the prefix that has this mask.
    pub fn length(&self, mask: &[u64]) -> usize {
        let last = self.order.iter().rposition(|&word| mask[word] != 0);
        last.map_or(0, |i| 64 * (i + 1) - mask[self.order[i]].trailing_zeros() as usize)
    }

    fn word(&self, key: &[u64], word: usize) -> u64 {
        key[self.order[word]]
    }

    fn get(&self, at: usize) -> Node {
        self.nodes.items()[at]
    }

    /// Returns the index directly before that of a node's first child.
    fn before_children(&self, node: &Node) -> usize {
        (node.children - self.nodes.first()) / size_of::<Node>()
    }

    /// Returns the index of a node's first answer.
    fn first_answer(&self, node: &Node) -> usize {
        (node.answers.wrapping_add(size_of::<u32>()) - self.answers.first()) / size_of::<u32>()
    }

    /// Returns the address of the memory directly before an answer.
    fn address_before_answer(&self, at: usize) -> usize {
        self.answers.first().wrapping_add(at * size_of::<u32>()).wrapping_sub(size_of::<u32>())
    }

    /// Returns the index of a chunk's child, or `None` if the chunk has no child.
    fn child(&self, node: &Node, chunk: u64) -> Option<usize> {
        node.has(chunk).then(|| self.before_children(node) + (node.forks >> chunk).count_ones() as usize)
    }

    /// Returns the answer of a chunk that has no child.
    fn answer(&self, node: &Node, chunk: u64) -> u32 {
        self.answers.items()[self.first_answer(node) + (node.runs >> chunk).count_ones() as usize - 1]
    }

    /// Returns the entry with the longest prefix that matches a key; `None` if no prefix matches.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> Option<EntryId> {
        let (mut at, mut word) = (0, 0);
        let answer = loop {
            let node = &self.nodes.items()[at];
            let chunk = node.chunk(self.word(key, word));
            if chunk >= CHUNKS as u64 {
                break node.inherited;
            }
            match self.child(node, chunk) {
                Some(child) => at = child,
                None => break self.answer(node, chunk),
            }
            word += usize::from(node.shift() == 0);
        };
        answer.checked_sub(1)
    }

    /// Returns the entry with exactly this prefix; `None` if there is no such entry.
    pub fn find(&self, key: &[u64], length: usize) -> Option<EntryId> {
        if length == 0 {
            return self.all.checked_sub(1);
        }
        let at = self.path_to(key, length)?.last()?.0;
        let same = |&id: &u32| self.links[id as usize].length == length as u16 && self.covers(id, at, key);
        self.own(at).find(same)
    }

    /// Returns whether an entry whose prefix ends in the node `at` matches a key whose lookup reaches this node.
    fn covers(&self, id: EntryId, at: usize, key: &[u64]) -> bool {
        let link = self.links[id as usize];
        let place = Place::new(link.length.into());
        let chunk = self.get(at).chunk(self.word(key, place.word));
        chunk >> place.open_bits == u64::from(link.first) >> place.open_bits
    }

    /// Returns the entries whose prefixes end in a node.
    fn own(&self, at: usize) -> impl Iterator<Item = EntryId> {
        let entry = |id: u32| (id != NONE).then_some(id);
        std::iter::successors(entry(self.get(at).own), move |&id| entry(self.links[id as usize].next))
    }

    /// Returns the nodes from the root to the node in which a prefix ends, each with the key's chunk. Returns `None` if
    /// there is no such node.
    fn path_to(&self, key: &[u64], length: usize) -> Option<Vec<(usize, u64)>> {
        let (place, mut path) = (Place::new(length), Vec::new());
        let (mut at, mut word) = (0, 0);
        loop {
            let node = self.get(at);
            let chunk = node.chunk(self.word(key, word));
            if chunk >= CHUNKS as u64 || node.shift() < place.shift_in(word) {
                return None;
            }
            path.push((at, chunk));
            if (word, node.shift()) == (place.word, place.shift) {
                return Some(path);
            }
            at = self.child(&node, chunk)?;
            word += usize::from(node.shift() == 0);
        }
    }
}
