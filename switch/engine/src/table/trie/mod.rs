//! The longest prefix: a multibit trie, six bits a node, compressed.
//!
//! A key is a string of bits, word after word in the order of their significance. A node looks at six bits of a word (its *chunk*; the
//! first one in a word has four). Only nodes at which keys part or prefixes end are there: a node's `path` has the bits of
//! its word that lie above its chunk, and a key that differs there is not below the node. From word to word there is no
//! skipping: who goes on to the next one has a node at the end of the one before.
//!
//! Prefixes end within chunks. What the keys of a chunk are answered, the answers of shorter prefixes included, is laid down run by
//! run; so the first node that a key does not get past has its answer. Children and runs stand in arrays
//! without gaps, those of the highest chunk first, and are found by counting bits, as in tree bitmaps (Eatherton, Varghese, Dittia:
//! "Tree bitmap", ACM CCR 34(2), 2004) and Poptries (Asai, Ohara: "Poptrie", SIGCOMM 2015). Machine code looks here too
//! ([`crate::native`]).

mod change;
mod node;
#[cfg(test)]
mod tests;

use self::node::{CHUNKS, NONE, Place};
use super::keys::EntryId;
use super::pool::Pool;

pub use self::node::{Node, STRIDE};

/// Longer keys are left to tuple space search.
pub const MOST_WORDS: usize = 64;

/// What is known of an entry, by id.
#[derive(Clone, Copy)]
struct Link {
    /// The next one that ends in the same node.
    next: u32,
    /// Bits of its prefix.
    length: u16,
    /// The first chunk of its node that it covers.
    first: u8,
}

/// Entries by prefix.
pub struct Trie {
    /// The words of keys by significance.
    order: Vec<usize>,
    /// The root is the first one.
    nodes: Pool<Node>,
    answers: Pool<u32>,
    links: Vec<Link>,
    /// What answers all keys.
    all: u32,
}

impl Trie {
    /// `order`: the words of keys, the most significant first.
    pub fn new(order: Vec<usize>) -> Trie {
        let mut trie = Trie { order, nodes: Pool::new(), answers: Pool::new(), links: Vec::new(), all: 0 };
        trie.nodes.take(1);
        let root = trie.node(Node::path(0, 64 / STRIDE * STRIDE), 0);
        trie.nodes.items_mut()[0] = root;
        trie
    }

    /// Address of the root; only a change of entries changes it.
    pub fn root(&self) -> usize {
        self.nodes.first()
    }

    /// Bits of the prefix under a mask.
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

    /// Index of the node that is in front of a node's children.
    fn before_children(&self, node: &Node) -> usize {
        (node.children - self.nodes.first()) / size_of::<Node>()
    }

    /// Index of a node's first answer.
    fn first_answer(&self, node: &Node) -> usize {
        (node.answers.wrapping_add(size_of::<u32>()) - self.answers.first()) / size_of::<u32>()
    }

    /// The address in front of an answer.
    fn in_front_of_answer(&self, at: usize) -> usize {
        self.answers.first().wrapping_add(at * size_of::<u32>()).wrapping_sub(size_of::<u32>())
    }

    /// The child of a chunk.
    fn child(&self, node: &Node, chunk: u64) -> Option<usize> {
        node.has(chunk).then(|| self.before_children(node) + (node.forks >> chunk).count_ones() as usize)
    }

    /// What answers a chunk.
    fn answer(&self, node: &Node, chunk: u64) -> u32 {
        self.answers.items()[self.first_answer(node) + (node.runs >> chunk).count_ones() as usize - 1]
    }

    /// The entry with the longest prefix of a key.
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

    /// The entry of a prefix.
    pub fn find(&self, key: &[u64], length: usize) -> Option<EntryId> {
        if length == 0 {
            return self.all.checked_sub(1);
        }
        let at = self.way(key, length)?.last()?.0;
        let same = |&id: &u32| self.links[id as usize].length == length as u16 && self.covers(id, at, key);
        self.own(at).find(same)
    }

    /// Whether an entry that ends in a node covers a key that gets there.
    fn covers(&self, id: EntryId, at: usize, key: &[u64]) -> bool {
        let link = self.links[id as usize];
        let place = Place::new(link.length.into());
        let chunk = self.get(at).chunk(self.word(key, place.word));
        chunk >> place.open == u64::from(link.first) >> place.open
    }

    /// The entries that end in a node.
    fn own(&self, at: usize) -> impl Iterator<Item = EntryId> {
        let some = |id: u32| (id != NONE).then_some(id);
        std::iter::successors(some(self.get(at).own), move |&id| some(self.links[id as usize].next))
    }

    /// The nodes from the root to where a prefix ends, each with the key's chunk; none if there is no such node.
    fn way(&self, key: &[u64], length: usize) -> Option<Vec<(usize, u64)>> {
        let (place, mut way) = (Place::new(length), Vec::new());
        let (mut at, mut word) = (0, 0);
        loop {
            let node = self.get(at);
            let chunk = node.chunk(self.word(key, word));
            if chunk >= CHUNKS as u64 || node.shift() < place.shift_in(word) {
                return None;
            }
            way.push((at, chunk));
            if (word, node.shift()) == (place.word, place.shift) {
                return Some(way);
            }
            at = self.child(&node, chunk)?;
            word += usize::from(node.shift() == 0);
        }
    }
}
