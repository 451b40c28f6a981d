//! Match-action tables: keys, the lookup structure and what entries hold.

pub mod answers;
pub mod key;
pub mod prefixes;
pub mod store;
