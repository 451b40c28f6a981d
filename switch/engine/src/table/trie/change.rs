//! Adds and removes entries of the trie. When a prefix is added or removed, the answers of its node's chunks are
//! recomputed. The answers of nodes below are recomputed if their inherited answer changes.
//!
//! Nodes contain the addresses of their children and answers, for machine code. When a pool's memory moves, the
//! addresses in all nodes are updated, and a copy of a node that was made before becomes invalid.

use super::node::{CHUNKS, NONE, Node, Place};
use super::{Link, Trie};
use crate::table::keys::EntryId;

impl Trie {
    /// Adds an entry whose prefix is not in the trie yet.
    pub fn insert(&mut self, key: &[u64], length: usize, id: EntryId) {
        if self.links.len() <= id as usize {
            self.links.resize(id as usize + 1, Link { next: NONE, length: 0, first: 0 });
        }
        if length == 0 {
            self.links[id as usize].length = 0;
            self.all = id + 1;
            return self.recompute(0, self.all);
        }
        let place = Place::new(length);
        let at = self.find_or_create(key, place);
        let node = &mut self.nodes.items_mut()[at];
        let chunk = node.chunk(key[self.order[place.word]]);
        let next = std::mem::replace(&mut node.own, id);
        let first = (chunk >> place.open_bits << place.open_bits) as u8;
        self.links[id as usize] = Link { next, length: length as u16, first };
        self.recompute(at, self.get(at).inherited);
    }

    /// Returns the index of the node at a place. If the node does not exist, it is created.
    fn find_or_create(&mut self, key: &[u64], place: Place) -> usize {
        let (mut at, mut word) = (0, 0);
        if self.get(0).is_vacant() {
            self.nodes.items_mut()[0].path = Node::path(self.word(key, 0), place.shift_in(0));
        }
        loop {
            let bits = self.word(key, word);
            let fork = self.get(at).fork_shift(bits).unwrap_or(0).max(place.shift_in(word));
            if fork > self.get(at).shift() {
                self.put_above(at, bits, fork);
            }
            let node = self.get(at);
            if (word, node.shift()) == (place.word, place.shift) {
                return at;
            }
            word += usize::from(node.shift() == 0);
            let chunk = node.chunk(bits);
            at = self.child(&node, chunk).unwrap_or_else(|| {
                let path = Node::path(self.word(key, word), place.shift_in(word));
                let child = self.node(path, self.answer(&node, chunk));
                self.add_child(at, chunk, child)
            });
        }
    }

    /// Creates a node without children and entries, for which all chunks have the answer `inherited`.
    pub(super) fn node(&mut self, path: u64, inherited: u32) -> Node {
        let answers = self.resize_answers(0, 0, 1);
        self.answers.items_mut()[answers] = inherited;
        let answers = self.address_before_answer(answers);
        Node { path, forks: 0, runs: 1 << 63, children: 0, answers, inherited, own: NONE }
    }

    /// Inserts a new node at index `at`. The node that was at this index becomes the new node's child.
    fn put_above(&mut self, at: usize, word: u64, shift: u32) {
        let above = self.node(Node::path(word, shift), self.get(at).inherited);
        let child = self.resize_nodes(0, 0, 1);
        let below = self.get(at);
        let (forks, children) = (1 << above.chunk(below.path), self.address_before_node(child));
        let nodes = self.nodes.items_mut();
        nodes[child] = below;
        nodes[at] = Node { forks, children, ..above };
    }

    fn add_child(&mut self, at: usize, chunk: u64, child: Node) -> usize {
        let node = self.get(at);
        let n = node.forks.count_ones() as usize;
        let first = self.resize_children(at, n, n + 1);
        let new = first + (node.forks >> chunk).count_ones() as usize;
        let nodes = self.nodes.items_mut();
        nodes.copy_within(new..first + n, new + 1);
        nodes[new] = child;
        nodes[at].forks |= 1 << chunk;
        new
    }

    /// Changes the number of a node's children from `old` to `new`. Returns the index of the first child.
    fn resize_children(&mut self, at: usize, old: usize, new: usize) -> usize {
        let first = if old > 0 { self.before_children(&self.get(at)) + 1 } else { 0 };
        let first = self.resize_nodes(first, old, new);
        self.nodes.items_mut()[at].children = self.address_before_node(first);
        first
    }

    /// Returns the address of the memory directly before a node.
    fn address_before_node(&self, at: usize) -> usize {
        self.nodes.first().wrapping_add(at * size_of::<Node>()).wrapping_sub(size_of::<Node>())
    }

    /// Resizes an array of nodes like [`Pool::resize`]. Addresses of children that were read before may become invalid.
    fn resize_nodes(&mut self, at: usize, old: usize, new: usize) -> usize {
        let before = self.nodes.first();
        let at = self.nodes.resize(at, old, new);
        let moved = self.nodes.first().wrapping_sub(before);
        if moved != 0 {
            self.nodes.items_mut().iter_mut().for_each(|n| n.children = n.children.wrapping_add(moved));
        }
        at
    }

    /// Resizes an array of answers like [`Pool::resize`]. Addresses of answers that were read before may become
    /// invalid.
    fn resize_answers(&mut self, at: usize, old: usize, new: usize) -> usize {
        let before = self.answers.first();
        let at = self.answers.resize(at, old, new);
        let moved = self.answers.first().wrapping_sub(before);
        if moved != 0 {
            self.nodes.items_mut().iter_mut().for_each(|n| n.answers = n.answers.wrapping_add(moved));
        }
        at
    }

    /// Recomputes the answers of a node's chunks. If the answer of a chunk with a child changes, the child is
    /// recomputed too.
    fn recompute(&mut self, at: usize, inherited: u32) {
        let mut by_chunk = [inherited; CHUNKS];
        let mut lengths = [0; CHUNKS];
        for id in self.own(at) {
            let link = self.links[id as usize];
            let first = usize::from(link.first);
            for chunk in first..first + (1 << Place::new(link.length.into()).open_bits) {
                if lengths[chunk] < link.length {
                    (by_chunk[chunk], lengths[chunk]) = (id + 1, link.length);
                }
            }
        }
        let ends = |&chunk: &usize| chunk + 1 == CHUNKS || by_chunk[chunk] != by_chunk[chunk + 1];
        let runs = (0..CHUNKS).filter(ends).fold(0, |runs: u64, chunk| runs | 1 << chunk);
        let node = self.get(at);
        let first = self.first_answer(&node);
        let first = self.resize_answers(first, node.runs.count_ones() as usize, runs.count_ones() as usize);
        for (i, chunk) in (0..CHUNKS).rev().filter(ends).enumerate() {
            self.answers.items_mut()[first + i] = by_chunk[chunk];
        }
        let answers = self.address_before_answer(first);
        let node = Node { runs, answers, inherited, ..self.get(at) };
        self.nodes.items_mut()[at] = node;
        for chunk in (0..CHUNKS as u64).filter(|&chunk| node.has(chunk)) {
            let Some(child) = self.child(&node, chunk) else { continue };
            if self.get(child).inherited != by_chunk[chunk as usize] {
                self.recompute(child, by_chunk[chunk as usize]);
            }
        }
    }

    /// Removes the entry that has this key.
    pub fn remove(&mut self, key: &[u64], id: EntryId) {
        let length = self.links[id as usize].length.into();
        if length == 0 {
            self.all = 0;
            return self.recompute(0, 0);
        }
        let Some(mut path) = self.path_to(key, length) else { return };
        let Some(&(at, _)) = path.last() else { return };
        let next = self.links[id as usize].next;
        let before = self.own(at).find(|&before| self.links[before as usize].next == id);
        match before {
            Some(before) => self.links[before as usize].next = next,
            None => self.nodes.items_mut()[at].own = next,
        }
        self.recompute(at, self.get(at).inherited);
        while let Some((at, _)) = path.pop() {
            let node = self.get(at);
            let above = path.last();
            match (node.forks.count_ones(), above) {
                _ if node.own != NONE => break,
                (0, Some(&(above, chunk))) => {
                    self.drop_answers(&node);
                    self.drop_child(above, chunk);
                }
                // The only child replaces its parent node.
                (1, _) if node.shift() > 0 => {
                    self.drop_answers(&node);
                    let child = self.before_children(&node) + 1;
                    self.nodes.items_mut()[at] = self.get(child);
                    self.nodes.give(child, 1);
                    break;
                }
                _ => break,
            }
        }
    }

    fn drop_answers(&mut self, node: &Node) {
        self.answers.give(self.first_answer(node), node.runs.count_ones() as usize);
    }

    fn drop_child(&mut self, at: usize, chunk: u64) {
        let node = self.get(at);
        let n = node.forks.count_ones() as usize;
        let first = self.before_children(&node) + 1;
        let old = first + (node.forks >> chunk).count_ones() as usize - 1;
        self.nodes.items_mut().copy_within(old + 1..first + n, old);
        self.nodes.items_mut()[at].forks &= !(1 << chunk);
        self.resize_children(at, n, n - 1);
    }
}
