//! Tables, action profiles and actions of a compiled program.

use crate::calc::Calculation;
use crate::layout::FieldRef;
use crate::program::{ActionId, ActionInfo, MatchKind, ProfileInfo, TableInfo};
use crate::table::answers::MOST_WORDS;
use crate::table::key::{KeyLayout, RawField};
use crate::table::trie;

/// A node of the control flow; 0 is the end.
pub type Node = u32;

/// What comes after a table.
#[derive(Debug, Clone)]
pub struct Next {
    /// By hit and miss.
    pub hit_miss: Option<(Node, Node)>,
    /// By action.
    pub by_action: Vec<(ActionId, Node)>,
    /// The same whatever happens.
    pub same: Option<Node>,
    /// When no action ran.
    pub none: Node,
}

impl Next {
    /// The node after this action ran (or none did).
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

/// A default action.
#[derive(Debug, Clone)]
pub struct DefaultAction {
    pub action: ActionId,
    /// The parameters' words.
    pub params: Vec<u64>,
}

pub struct Table {
    pub info: TableInfo,
    pub key: KeyLayout,
    pub next: Next,
    pub default: Option<DefaultAction>,
    /// Entries of the program.
    pub entries: Vec<ConstEntry>,
    /// Can be run in place: no key, constant action, nothing to see.
    pub inline: bool,
}

/// Tables that machine code looks up by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direct {
    /// See [`crate::table::answers`].
    Exact,
    /// See [`crate::table::trie`].
    Prefix,
}

impl Table {
    /// Entries have a counter, a meter or an idle time.
    pub fn attended(&self) -> bool {
        self.info.direct_counter || self.info.direct_meter.is_some() || self.info.support_timeout
    }

    /// The entry found says all there is: nothing counts, meters or chooses.
    pub fn plain(&self) -> bool {
        !self.attended() && self.info.profile.is_none()
    }

    /// Every entry has the same mask.
    pub fn exact(&self) -> bool {
        self.info.keys.iter().all(|k| k.kind == MatchKind::Exact)
    }

    /// The longest prefix decides, and nothing else. Not under a mask of the program's, where prefixes of several lengths may be the same.
    pub fn prefixed(&self) -> bool {
        let mut kinds = self.info.keys.iter().map(|k| k.kind).filter(|&kind| kind != MatchKind::Exact);
        let has_one_prefix = kinds.next() == Some(MatchKind::Lpm) && kinds.next().is_none();
        has_one_prefix && !self.info.needs_priority && !self.key.masked && self.key.words <= trie::MOST_WORDS
    }

    /// How machine code finds the answers by itself, if it does.
    pub fn direct(&self) -> Option<Direct> {
        if !self.plain() || !(1..=MOST_WORDS).contains(&self.key.words) {
            None
        } else if self.exact() {
            Some(Direct::Exact)
        } else {
            self.prefixed().then_some(Direct::Prefix)
        }
    }
}

/// An entry of the program.
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
    /// Where the parameters go.
    pub params: Vec<FieldRef>,
    pub json: usize,
}

impl Action {
    /// Words of all parameters together.
    pub fn words(&self) -> usize {
        self.params.iter().map(|p| p.limbs()).sum()
    }
}
