//! Match-action tables: keys, lookup structures and results.

pub mod answer;
pub mod answers;
pub mod hash;
pub mod key;
pub mod keys;
pub mod pool;
pub mod store;
pub mod trie;
pub mod tuples;
