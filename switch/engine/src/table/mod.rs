//! Match-action tables: keys, the lookup structure and what entries hold.

pub mod answers;
pub mod key;
pub mod pool;
pub mod store;
pub mod trie;
pub mod tuples;
