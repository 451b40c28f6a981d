//! Compiled rules.
//!
//! The rule list is divided into blocks, before the target of a `goto` and behind a rule with `else`. Within a block
//! the first alternative that holds decides; indexes find the candidates.

use std::collections::HashMap;
use std::ops::Range;

use crate::config::{Limits, Protocol, Sticky};
use crate::field::{Field, FieldId};
use crate::index::{Alt, Index};
use crate::paths::Paths;
use crate::test::Cond;

/// A group of servers: an index into [`RuleSet::groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u16);

/// The compiled rules of one content service. Connections share them by an `Arc`; a reload makes a new one.
#[derive(Debug)]
pub struct RuleSet {
    pub(crate) protocol: Protocol,
    pub(crate) limits: Limits,
    pub(crate) offer: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) fields: Vec<Field>,
    pub(crate) lookup: Lookup,
    pub(crate) xml: Paths,
    pub(crate) json: Paths,
    pub(crate) alternatives: Vec<Alternative>,
    /// The action of each rule when it matches.
    pub(crate) actions: Vec<Action>,
    pub(crate) blocks: Vec<Block>,
    /// The action of each rule when it does not match; none: the next rule is evaluated.
    pub(crate) misses: Vec<Option<Action>>,
    /// The block of each rule.
    pub(crate) block_of: Vec<u32>,
    pub(crate) default: Action,
    /// Indexes of the rules that refuse, by their match or by their `else`, in ascending order.
    pub(crate) refusing: Vec<u32>,
}

/// One alternative of a rule. All conditions must hold; those on fields of the head come first.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub rule: u32,
    pub conds: Vec<Cond>,
    /// The number of conditions on fields of the head.
    pub heads: usize,
    /// The late field whose values find this alternative; none when only the absence of late values can make it hold.
    pub late_cover: Option<FieldId>,
}

/// The action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Route(GroupId, Sticky),
    Refuse(u16),
    /// Continues at the block with this index.
    Goto(u32),
}

/// A run of rules, of which the first one that matches decides.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub alts: Range<Alt>,
    pub indexes: HashMap<FieldId, Index>,
    /// Alternatives that the indexes by the head's values cannot find, although their conditions concern only the head or
    /// they have none. They are tried for every request.
    pub unindexed: Vec<Alt>,
    /// For each late field (of a body or dialogue), the first alternative that only values of this field find.
    pub late: Vec<(Alt, FieldId)>,
    /// Alternatives that only the absence of late values can make hold.
    pub absent: Vec<Alt>,
    /// Alternatives with late conditions whose rule does not route. A limit on bodies must not skip them.
    pub guards: Vec<Alt>,
    /// The rule and action when no rule of the block matches (an `else`); none: the next block follows.
    pub miss: Option<(u32, Action)>,
}

/// The fields of one kind, by their names.
pub(crate) type Names = HashMap<Box<[u8]>, FieldId>;

/// The fields, by kind and name, for the parsers of requests.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    pub path: Option<FieldId>,
    pub url: Option<FieldId>,
    pub host: Option<FieldId>,
    pub method: Option<FieldId>,
    pub source: Option<FieldId>,
    pub destination: Option<FieldId>,
    pub port: Option<FieldId>,
    pub sni: Option<FieldId>,
    pub alpn: Option<FieldId>,
    pub mail_from: Option<FieldId>,
    pub rcpt_to: Option<FieldId>,
    pub user: Option<FieldId>,
    pub helo: Option<FieldId>,
    pub query: Names,
    pub header: Names,
    pub cookie: Names,
    pub form: Names,
}

impl Lookup {
    pub(crate) fn new(fields: &[Field]) -> Lookup {
        let mut lookup = Lookup::default();
        for (id, field) in fields.iter().enumerate() {
            let id = FieldId(id as u32);
            if let Some(slot) = lookup.single(field) {
                *slot = Some(id);
            } else if let Some((names, name)) = lookup.named(field) {
                names.insert(name.as_bytes().into(), id);
            }
        }
        lookup
    }

    fn single(&mut self, field: &Field) -> Option<&mut Option<FieldId>> {
        Some(match field {
            Field::Path => &mut self.path,
            Field::Url => &mut self.url,
            Field::Host => &mut self.host,
            Field::Method => &mut self.method,
            Field::Source => &mut self.source,
            Field::Destination => &mut self.destination,
            Field::Port => &mut self.port,
            Field::Sni => &mut self.sni,
            Field::Alpn => &mut self.alpn,
            Field::MailFrom => &mut self.mail_from,
            Field::RcptTo => &mut self.rcpt_to,
            Field::User => &mut self.user,
            Field::Helo => &mut self.helo,
            _ => return None,
        })
    }

    fn named<'f>(&mut self, field: &'f Field) -> Option<(&mut Names, &'f str)> {
        Some(match field {
            Field::Query(name) => (&mut self.query, name),
            Field::Header(name) => (&mut self.header, name),
            Field::Cookie(name) => (&mut self.cookie, name),
            Field::Form(name) => (&mut self.form, name),
            _ => return None,
        })
    }
}

impl RuleSet {
    /// Returns the protocol that clients speak.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns how much of a connection the rules read.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the groups of the rules and the default, indexed by [`GroupId`]. The default's group is the first.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Returns a group's name.
    pub fn group(&self, group: GroupId) -> &str {
        &self.groups[group.0 as usize]
    }

    /// Returns the rules' names, in list order.
    pub fn rules(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn alternative(&self, alt: Alt) -> &Alternative {
        &self.alternatives[alt as usize]
    }
}
