//! Compares the trie with a list of prefixes, and checks the invariants of its nodes.

use super::node::Place;
use super::*;
use proptest::prelude::*;

/// Returns the words of a key, of which only the first `length` bits are kept and the others are zero.
fn prefix_of(key: &[u64], order: &[usize], length: usize) -> Vec<u64> {
    let mut masked = vec![0; key.len()];
    for (i, &word) in order.iter().enumerate() {
        let bits = length.saturating_sub(64 * i).min(64) as u32;
        masked[word] = key[word] & !u64::MAX.checked_shr(bits).unwrap_or(0);
    }
    masked
}

/// Checks the invariants: every node is needed for an entry or a fork, and every answer is the entry with the longest
/// matching prefix.
fn check(trie: &Trie, at: usize, inherited: u32) {
    let node = trie.get(at);
    assert_eq!(node.inherited, inherited);
    let alone = node.own == NONE && node.forks.count_ones() < if node.shift() == 0 { 1 } else { 2 };
    assert!(!alone || at == 0 && node.is_vacant(), "a node without entries or a fork");
    for chunk in 0..if node.shift() == 60 { 16 } else { 64 } {
        let covering = |&id: &u32| {
            let link = trie.links[id as usize];
            let open = Place::new(link.length.into()).open_bits;
            u64::from(link.first) >> open == chunk >> open
        };
        let longest = trie.own(at).filter(covering).max_by_key(|&id| trie.links[id as usize].length);
        let expected = longest.map_or(inherited, |id| id + 1);
        assert_eq!(trie.answer(&node, chunk), expected);
        if let Some(child) = trie.child(&node, chunk) {
            let below = trie.get(child);
            let same_word = below.shift() < node.shift();
            assert!(same_word || node.shift() == 0);
            assert!(!same_word || node.chunk(below.path) == chunk);
            check(trie, child, expected);
        }
    }
}

#[test]
fn prefixes_end_in_chunks() {
    let place = |length| {
        let p = Place::new(length);
        (p.word, p.shift, p.open_bits)
    };
    assert_eq!([1, 4, 5, 10].map(place), [(0, 60, 3), (0, 60, 0), (0, 54, 5), (0, 54, 0)]);
    assert_eq!([64, 65, 128].map(place), [(0, 0, 0), (1, 60, 3), (1, 0, 0)]);
    let trie = Trie::new(vec![1, 0]);
    assert_eq!(trie.length(&[0, 0]), 0);
    assert_eq!(trie.length(&[0, 1 << 63]), 1);
    assert_eq!(trie.length(&[0, u64::MAX]), 64);
    assert_eq!(trie.length(&[3 << 62, u64::MAX]), 66);
}

/// Returns the next pseudo-random number of the generator xorshift64*.
fn random(state: &mut u64) -> u64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

#[test]
fn memory_is_in_proportion_to_the_entries() {
    let mut state = 1;
    let mut trie = Trie::new(vec![1, 0]);
    let mut entries = Vec::new();
    for length in (1..=128).cycle().take(20_000) {
        let key = prefix_of(&[random(&mut state), random(&mut state)], &[1, 0], length);
        if trie.find(&key, length).is_none() {
            trie.insert(&key, length, entries.len() as u32);
            entries.push(key);
        }
    }
    let bytes = trie.nodes.bytes() + trie.answers.bytes();
    assert!(bytes < 140 * entries.len(), "{} bytes an entry", bytes / entries.len());
    for (key, id) in entries.iter().zip(0..) {
        trie.remove(key, id);
    }
    assert_eq!((trie.nodes.used(), trie.answers.used()), (1, 1));
}

proptest! {
    /// Compares the results of the trie with those of a linear search in a list of prefixes.
    #[test]
    fn the_longest_prefix_answers(
        width in 1usize..=200,
        backwards in any::<bool>(),
        ops in proptest::collection::vec((0..3, 0usize..=200, 0usize..200, proptest::collection::vec(0usize..8, 4)), 0..120),
    ) {
        let words = width.div_ceil(64);
        let order: Vec<usize> = if backwards { (0..words).rev().collect() } else { (0..words).collect() };
        let mut trie = Trie::new(order.clone());
        let mut list: Vec<(usize, Vec<u64>)> = Vec::new();
        // The words differ only in a few bits, so that some prefixes are prefixes of others.
        let patterns = [0, u64::MAX, 1 << 63, 1, 0x0a01_0000_0000_0000, 0x0a01_0200_0000_0000, 0xff00, 0x5555_5555_5555_5555];
        for (what, length, flip, kinds) in &ops {
            let length = length % (width + 1);
            let mut key: Vec<u64> = kinds[..words].iter().map(|&kind| patterns[kind]).collect();
            key[flip / 64 % words] ^= 1 << (flip % 64);
            let prefix = prefix_of(&key, &order, length);
            let position = list.iter().position(|e| *e == (length, prefix.clone()));
            prop_assert_eq!(trie.find(&prefix, length), position.map(|i| i as u32));
            match position {
                None if *what > 0 => {
                    // Ids are indices in the list. Ids of removed entries are used again.
                    let id = list.iter().position(|e| e.1.is_empty()).unwrap_or(list.len());
                    trie.insert(&prefix, length, id as u32);
                    if id == list.len() { list.push((length, prefix)) } else { list[id] = (length, prefix) }
                }
                Some(id) if *what == 0 => {
                    trie.remove(&prefix, id as u32);
                    list[id] = (0, Vec::new());
                }
                _ => {}
            }
            check(&trie, 0, trie.all);
            let matching = |e: &(usize, Vec<u64>)| !e.1.is_empty() && prefix_of(&key, &order, e.0) == e.1;
            let best = (0..list.len()).filter(|&i| matching(&list[i])).max_by_key(|&i| list[i].0);
            prop_assert_eq!(trie.lookup(&key), best.map(|i| i as u32));
        }
        for (id, (_, prefix)) in list.iter().enumerate().filter(|(_, e)| !e.1.is_empty()) {
            trie.remove(prefix, id as u32);
        }
        check(&trie, 0, 0);
        prop_assert_eq!((trie.nodes.used(), trie.answers.used()), (1, 1));
    }
}
