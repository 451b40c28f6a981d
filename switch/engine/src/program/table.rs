//! Tables, action profiles and actions of a compiled program.

use crate::calc::Calculation;
use crate::layout::FieldRef;
use crate::program::{ActionId, ActionInfo, MatchKind, ProfileInfo, TableInfo};
use crate::table::answers::MAX_WORDS;
use crate::table::key::{KeyLayout, RawField};
use crate::table::trie;

/// The number of a node in the control flow. Node 0 is the end of the pipeline.
pub type Node = u32;

/// The nodes of the control flow that may follow a table.
#[derive(Debug, Clone)]
pub struct Next {
    /// The nodes after a hit and after a miss, if the control flow tests whether the table hit.
    pub hit_miss: Option<(Node, Node)>,
    /// The node that follows each action.
    pub by_action: Vec<(ActionId, Node)>,
    /// The node that follows in every case, if only one node can follow.
    pub same: Option<Node>,
    /// The node that follows if no action ran.
    pub none: Node,
}

impl Next {
    /// Returns the node that follows this action (`None` if no action ran).
    #[inline]
    pub fn after(&self, action: Option<ActionId>, hit: bool) -> Node {
        if let Some(node) = self.same {
            return node;
        }
        if let Some((on_hit, on_miss)) = self.hit_miss {
            return if hit { on_hit } else { on_miss };
        }
        let by_action = |a| self.by_action.iter().find(|b| b.0 == a).map(|b| b.1);
        action.and_then(by_action).unwrap_or(self.none)
    }
}

/// A table's default action with its parameters.
#[derive(Debug, Clone)]
pub struct DefaultAction {
    pub action: ActionId,
    /// The parameters, as 64-bit words.
    pub params: Vec<u64>,
}

pub struct Table {
    pub info: TableInfo,
    pub key: KeyLayout,
    pub next: Next,
    pub default: Option<DefaultAction>,
    /// The entries that the program declares.
    pub entries: Vec<ConstEntry>,
    /// Whether the default action can be compiled in place of the lookup. The table must have no key, no direct counter
    /// or meter, no action profile, and a constant default action.
    pub inline: bool,
}

/// A kind of table lookup that machine code performs without calling Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// A lookup in a hash table, [`crate::table::answers`].
    Exact,
    /// A longest-prefix match in a trie, [`crate::table::trie`].
    Prefix,
}

impl Table {
    /// Returns whether entries have a direct counter, a direct meter or an idle timeout.
    pub fn has_direct_state(&self) -> bool {
        self.info.direct_counter || self.info.direct_meter.is_some() || self.info.support_timeout
    }

    /// Returns whether the table is plain, which means that its entries consist only of an action. A plain table has no
    /// direct counter or meter, no idle timeout and no action profile.
    pub fn plain(&self) -> bool {
        !self.has_direct_state() && self.info.profile.is_none()
    }

    /// Returns whether all key fields match exactly.
    pub fn exact(&self) -> bool {
        self.info.keys.iter().all(|k| k.kind == MatchKind::Exact)
    }

    /// Returns whether the table's lookup is a longest-prefix match in a trie: the key has one prefix, all other fields
    /// are exact, and the trie supports the key's length. The result is false for keys with a mask in the program,
    /// because prefixes of different lengths may be equal under a mask.
    pub fn prefixed(&self) -> bool {
        let mut kinds = self.info.keys.iter().map(|k| k.kind).filter(|&kind| kind != MatchKind::Exact);
        let has_one_prefix = kinds.next() == Some(MatchKind::Lpm) && kinds.next().is_none();
        has_one_prefix && !self.info.needs_priority && !self.key.masked && self.key.words <= trie::MAX_WORDS
    }

    /// Returns the kind of lookup that machine code performs without calling Rust; `None` if the lookup must call Rust.
    pub fn direct(&self) -> Option<Direct> {
        if !self.plain() || !(1..=MAX_WORDS).contains(&self.key.words) {
            None
        } else if self.exact() {
            Some(Direct::Exact)
        } else {
            self.prefixed().then_some(Direct::Prefix)
        }
    }
}

/// An entry that the program declares in the P4 source.
pub struct ConstEntry {
    pub fields: Vec<RawField>,
    pub priority: i32,
    pub call: DefaultAction,
}

pub struct Profile {
    pub info: ProfileInfo,
    pub selector: Option<Calculation>,
}

pub struct Action {
    pub info: ActionInfo,
    /// The fields to which the parameters are written.
    pub params: Vec<FieldRef>,
    pub json: usize,
}

impl Action {
    /// Returns the number of words of all parameters.
    pub fn words(&self) -> usize {
        self.params.iter().map(|p| p.limbs()).sum()
    }
}
