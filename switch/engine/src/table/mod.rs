//! Match-action tables: keys, the lookup structure and what entries hold.

pub mod key;
pub mod store;
