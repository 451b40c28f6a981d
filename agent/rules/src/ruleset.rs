//! The compiled form of a service's rules.
//!
//! The rule list is divided into blocks. A block begins with a rule that is the target of a `goto`, or that follows a
//! rule with `else`. Within a block, the first alternative that holds decides; indexes find the candidates.

use std::collections::HashMap;
use std::ops::Range;

use crate::config::{Limits, Protocol, Sticky};
use crate::field::{Field, FieldId};
use crate::index::{Alt, Index};
use crate::paths::Paths;
use crate::test::Cond;

/// A group of servers, as an index into [`RuleSet::groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u16);

/// The compiled rules of a content service. Connections share a rule set by an `Arc`; a reload creates a new one.
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
    /// For each rule, the action if the rule matches.
    pub(crate) actions: Vec<Action>,
    pub(crate) blocks: Vec<Block>,
    /// For each rule, the action if the rule does not match; none if the next rule is then evaluated.
    pub(crate) misses: Vec<Option<Action>>,
    /// For each rule, the index of its block.
    pub(crate) block_of: Vec<u32>,
    pub(crate) default: Action,
    /// Indexes, in ascending order, of the rules whose action or `else` is a refusal.
    pub(crate) refusing: Vec<u32>,
}

/// An alternative of a rule. All conditions must hold; those on fields of the head come first in the list.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub rule: u32,
    pub conds: Vec<Cond>,
    /// The number of conditions on fields of the head.
    pub heads: usize,
    /// The late field by whose values the index finds this alternative. None if the alternative has no late conditions,
    /// or if the absence of late values can satisfy all of them.
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

/// A block of consecutive rules; the first rule that matches decides.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub alts: Range<Alt>,
    pub indexes: HashMap<FieldId, Index>,
    /// Alternatives that are tried for every request. They have no conditions, or they have conditions on the head that
    /// all can hold without a value, so that the indexes cannot find them.
    pub unindexed: Vec<Alt>,
    /// For each late field (of a body or dialogue), the first alternative that the index finds only by values of this
    /// field.
    pub late: Vec<(Alt, FieldId)>,
    /// Alternatives without conditions on the head, whose late conditions all can hold without a value (such as `not`).
    /// They are tried for every request, because the indexes cannot find them.
    pub absent: Vec<Alt>,
    /// Alternatives with late conditions whose rule refuses or continues elsewhere (`goto`), and so may lead to a
    /// refusal. If the body reaches its limit while one of them may still decide, the request is refused (unless no
    /// rule refuses).
    pub guards: Vec<Alt>,
    /// The rule whose `else` action applies if no rule of the block matches, and this action. None if the next block is
    /// evaluated instead.
    pub miss: Option<(u32, Action)>,
}

/// The fields of one kind (such as headers), by their names.
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
    /// Returns the protocol that clients use.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the limits on what the rules read of a connection.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the names of the groups in the rules and the default, indexed by [`GroupId`]. The first group is that of
    /// the default.
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
