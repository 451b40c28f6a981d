//! Compiled rules.
//!
//! The list is cut into blocks: before the target of a `goto`, and behind a rule with `else`. Within a block the first
//! alternative that holds decides, wherever it stands: indexes find the candidates.

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

/// The rules of one content service, ready to be asked. Connections share it by an `Arc`; a reload makes a new one.
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
    /// What each rule does when it matches.
    pub(crate) actions: Vec<Action>,
    pub(crate) blocks: Vec<Block>,
    /// What each rule does when it does not match, if that is not to go on with the next one.
    pub(crate) misses: Vec<Option<Action>>,
    /// The block that each rule is in.
    pub(crate) block_of: Vec<u32>,
    pub(crate) default: Action,
    /// The rules that refuse, by a match or by its failing.
    pub(crate) refusing: Vec<u32>,
}

/// One alternative of a rule: all conditions must hold, those on the head first.
#[derive(Debug)]
pub(crate) struct Alternative {
    pub rule: u32,
    pub conds: Vec<Cond>,
    /// So many conditions are on fields of the head.
    pub heads: usize,
    /// The field under which late values find it; none when only late absence can make it hold.
    pub late_cover: Option<FieldId>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Route(GroupId, Sticky),
    Refuse(u16),
    /// Goes on with a block.
    Goto(u32),
}

/// A run of rules of which the first that matches decides.
#[derive(Debug, Default)]
pub(crate) struct Block {
    pub alts: Range<Alt>,
    pub indexes: HashMap<FieldId, Index>,
    /// Alternatives that no value of the head finds, although they ask about the head or about nothing.
    pub unindexed: Vec<Alt>,
    /// For each field of a body or dialogue the first alternative that asks about nothing else first.
    pub late: Vec<(Alt, FieldId)>,
    /// Alternatives that late absence alone can make hold.
    pub absent: Vec<Alt>,
    /// Alternatives on late fields whose rule does not route: a limit must not pass them by.
    pub guards: Vec<Alt>,
    /// When no rule matches: an `else`, or none for the next block.
    pub miss: Option<(u32, Action)>,
}

/// Fields of one kind by their names.
pub(crate) type Names = HashMap<Box<[u8]>, FieldId>;

/// Fields by their names, for those who read requests.
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
    /// What clients speak.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// How much of a connection is looked at.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The groups that rules and default name; a [`GroupId`] is an index into them. The default's group is the first.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// A group's name.
    pub fn group(&self, group: GroupId) -> &str {
        &self.groups[group.0 as usize]
    }

    /// The rules' names, in list order.
    pub fn rules(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn alternative(&self, alt: Alt) -> &Alternative {
        &self.alternatives[alt as usize]
    }
}
