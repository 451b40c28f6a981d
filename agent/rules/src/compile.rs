//! Compiles the `content:` block to a rule set, or returns the list of its mistakes.

use std::collections::HashMap;

use serde_json::Value;

use crate::Problem;
use crate::config::{Content, Mapping, Protocol, Refuse, Rule, Sticky};
use crate::field::{Field, FieldId, fields_of};
use crate::forms;
use crate::guards;
use crate::paths::{self, Paths};
use crate::ruleset::{Action, Alternative, Block, GroupId, Lookup, RuleSet};
use crate::test::Cond;
use crate::{blocks, config};

impl RuleSet {
    /// Compiles the `content:` block.
    ///
    /// # Errors
    /// Returns the mistakes in the block. Options by which requests would bypass refusing rules are only reported if
    /// there is no other mistake.
    pub fn compile(content: &Content) -> Result<RuleSet, Vec<Problem>> {
        Compiler::new(content).compile()
    }

    /// Reads the `content:` block from JSON and compiles it.
    ///
    /// # Errors
    /// Returns the errors of [`Content::from_json`] and [`RuleSet::compile`].
    pub fn from_json(json: &[u8]) -> Result<RuleSet, Vec<Problem>> {
        RuleSet::compile(&Content::from_json(json).map_err(|problem| vec![problem])?)
    }
}

/// The `to`, `sticky`, `goto` and `refuse` of a rule, or of its `else`.
struct Actions<'c> {
    to: Option<&'c String>,
    sticky: Option<Sticky>,
    goto: Option<&'c String>,
    refuse: Option<Refuse>,
}

/// An action during compilation: a `goto` contains the index of its target rule, because the blocks are not formed yet.
#[derive(Clone, Copy)]
enum UnresolvedAction {
    Do(Action),
    Goto(u32),
}

struct Compiler<'c> {
    content: &'c Content,
    problems: Vec<Problem>,
    groups: Vec<String>,
    fields: Vec<Field>,
    ids: HashMap<Field, FieldId>,
    names: HashMap<&'c str, usize>,
    alternatives: Vec<Alternative>,
}

impl<'c> Compiler<'c> {
    fn new(content: &'c Content) -> Compiler<'c> {
        Compiler {
            content,
            problems: Vec::new(),
            groups: Vec::new(),
            fields: Vec::new(),
            ids: HashMap::new(),
            names: HashMap::new(),
            alternatives: Vec::new(),
        }
    }

    fn compile(mut self) -> Result<RuleSet, Vec<Problem>> {
        let content = self.content;
        self.limits();
        self.offers();
        self.names();
        let default = Action::Route(self.group(&content.default.to), content.default.sticky);
        self.sticky("default.sticky", None, content.default.sticky);
        let mut steps = Vec::new();
        for (index, rule) in content.rules.iter().enumerate() {
            self.matches(index, rule);
            steps.push(self.steps(index, rule));
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let goto = |step: &UnresolvedAction| if let UnresolvedAction::Goto(rule) = step { Some(*rule) } else { None };
        let targets: Vec<u32> = steps
            .iter()
            .flat_map(|(then, otherwise_action)| [goto(then), otherwise_action.as_ref().and_then(goto)])
            .flatten()
            .collect();
        let ends: Vec<bool> = steps.iter().map(|(_, otherwise_action)| otherwise_action.is_some()).collect();
        let block_of = blocks::cut(&ends, &targets);
        let resolve = |step: UnresolvedAction| match step {
            UnresolvedAction::Do(action) => action,
            UnresolvedAction::Goto(rule) => Action::Goto(block_of[rule as usize]),
        };
        let actions: Vec<Action> = steps.iter().map(|&(then, _)| resolve(then)).collect();
        let lookup = Lookup::new(&self.fields);
        let mut blocks = blocks::build(&mut self.alternatives, &block_of, &actions);
        let misses: Vec<Option<Action>> =
            steps.iter().map(|&(_, otherwise_action)| otherwise_action.map(resolve)).collect();
        for (rule, miss) in misses.iter().enumerate() {
            let block: &mut Block = &mut blocks[block_of[rule] as usize];
            block.miss = miss.map(|action| (rule as u32, action)).or(block.miss);
        }
        let is_refusal = |action: &Action| matches!(action, Action::Refuse(_));
        let refuses = |rule: &usize| is_refusal(&actions[*rule]) || misses[*rule].as_ref().is_some_and(is_refusal);
        let refusing = (0..actions.len()).filter(refuses).map(|rule| rule as u32).collect();
        let rules = RuleSet {
            refusing,
            protocol: content.protocol,
            limits: content.limits.clone(),
            offer: content.offer.clone(),
            groups: self.groups,
            names: content.rules.iter().map(|rule| rule.name.clone()).collect(),
            xml: Paths::xml(&self.fields),
            json: Paths::json(&self.fields),
            fields: self.fields,
            lookup,
            alternatives: self.alternatives,
            actions,
            blocks,
            misses,
            block_of,
            default,
        };
        let problems = guards::problems(content, &rules);
        if problems.is_empty() { Ok(rules) } else { Err(problems) }
    }

    /// Records a problem. If the problem belongs to a rule, the path begins with the rule's index, and the message with
    /// the rule's index and name.
    fn problem(&mut self, rule: Option<usize>, place: &str, message: impl AsRef<str>, remedy: impl Into<String>) {
        let message = message.as_ref();
        let (path, message) = match rule {
            None => (place.to_owned(), message.to_owned()),
            Some(index) => {
                let dot = if place.is_empty() || place.starts_with('[') { "" } else { "." };
                let name = &self.content.rules[index].name;
                (format!("rules[{index}]{dot}{place}"), format!("rule {index} ({name}): {message}"))
            }
        };
        self.problems.push(Problem { path, message, remedy: remedy.into() });
    }

    fn limits(&mut self) {
        let config::Limits { head, wait_s, depth, .. } = self.content.limits.clone();
        if !(256..=1 << 20).contains(&head.0) {
            self.problem(
                None,
                "limits.head",
                format!("a head of {} bytes is out of range", head.0),
                "write 256 to 1MiB, such as 16KiB",
            );
        }
        if self.content.limits.body.0 > 64 << 20 {
            self.problem(None, "limits.body", "the body's limit is above 64 MiB", "write at most 64MiB");
        }
        if wait_s.is_some_and(|wait_s| !(wait_s > 0.0 && wait_s.is_finite())) {
            self.problem(None, "limits.wait_s", "the wait is no positive number", "write seconds above 0");
        }
        if !(1..=1000).contains(&depth) {
            self.problem(None, "limits.depth", format!("a depth of {depth} is out of range"), "write 1 to 1000");
        }
    }

    fn offers(&mut self) {
        let protocol = self.content.protocol;
        if matches!(protocol, Protocol::Http | Protocol::Tls) && !self.content.offer.is_empty() {
            self.problem(None, "offer", format!("{protocol} has no extensions to offer"), "leave offer out");
        }
        for (index, offer) in self.content.offer.iter().enumerate() {
            if offer.is_empty() || !offer.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
                self.problem(
                    None,
                    &format!("offer[{index}]"),
                    "the extension is empty, or has characters other than printable ASCII",
                    "write a word such as STARTTLS",
                );
            }
        }
    }

    fn names(&mut self) {
        let content = self.content;
        for (index, rule) in content.rules.iter().enumerate() {
            if rule.name.is_empty() {
                self.problem(Some(index), "name", "the name is empty", "give the rule a name");
            }
            if let Some(first) = self.names.insert(&rule.name, index) {
                self.problem(Some(index), "name", format!("rule {first} has the same name"), "give each rule its own");
            }
        }
    }

    fn group(&mut self, name: &str) -> GroupId {
        let index = self.groups.iter().position(|group| group == name).unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.groups.len() - 1
        });
        GroupId(index as u16)
    }

    fn sticky(&mut self, place: &str, rule: Option<usize>, sticky: Sticky) {
        if sticky == Sticky::None && self.content.protocol != Protocol::Http {
            let message = format!("a {} connection has one request only", self.content.protocol);
            self.problem(rule, place, message, "write sticky: connection");
        }
    }

    /// Returns the action of `rule` for a request that matches it, and its `else` action, if it has one.
    fn steps(&mut self, index: usize, rule: &'c Rule) -> (UnresolvedAction, Option<UnresolvedAction>) {
        let Rule { to, sticky, goto, refuse, otherwise, .. } = rule;
        let then = Actions { to: to.as_ref(), sticky: *sticky, goto: goto.as_ref(), refuse: *refuse };
        let then = self.step(index, "", &then);
        let otherwise_action = otherwise.as_ref().map(|e| {
            let actions = Actions { to: e.to.as_ref(), sticky: e.sticky, goto: e.goto.as_ref(), refuse: e.refuse };
            self.step(index, "else.", &actions)
        });
        (then, otherwise_action)
    }

    fn step(&mut self, index: usize, place: &str, actions: &Actions) -> UnresolvedAction {
        let given: Vec<&str> =
            [actions.to.map(|_| "to"), actions.goto.map(|_| "goto"), actions.refuse.map(|_| "refuse")]
                .into_iter()
                .flatten()
                .collect();
        let rule_place = place.trim_end_matches('.');
        match given[..] {
            [] => self.problem(Some(index), rule_place, "the rule has no action", "write one of to, goto and refuse"),
            [_] => {}
            _ => self.problem(
                Some(index),
                rule_place,
                format!("{} exclude each other", given.join(" and ")),
                "keep one of them",
            ),
        }
        if let (Some(sticky), None) = (actions.sticky, actions.to) {
            let _ = sticky;
            self.problem(
                Some(index),
                &format!("{place}sticky"),
                "sticky needs a group",
                "write to as well, or leave sticky out",
            );
        }
        let sticky = actions.sticky.unwrap_or_default();
        if let Some(to) = actions.to {
            self.sticky(&format!("{place}sticky"), Some(index), sticky);
            return UnresolvedAction::Do(Action::Route(self.group(to), sticky));
        }
        if let Some(refuse) = actions.refuse {
            return UnresolvedAction::Do(Action::Refuse(self.status(index, &format!("{place}refuse"), refuse)));
        }
        UnresolvedAction::Goto(actions.goto.map_or(0, |name| self.target(index, &format!("{place}goto"), name)))
    }

    fn status(&mut self, index: usize, place: &str, refuse: Refuse) -> u16 {
        match (self.content.protocol, refuse) {
            (_, Refuse::Plainly(false)) => {
                self.problem(
                    Some(index),
                    place,
                    "refuse: false does nothing",
                    "leave refuse out, or write refuse: true",
                );
                0
            }
            (Protocol::Http, Refuse::Plainly(true)) => 403,
            (Protocol::Smtp, Refuse::Plainly(true)) => 550,
            (_, Refuse::Plainly(true)) => 0,
            (Protocol::Http | Protocol::Smtp, Refuse::Status(status @ 400..=599)) => status,
            (Protocol::Http | Protocol::Smtp, Refuse::Status(status)) => {
                self.problem(Some(index), place, format!("{status} does not refuse"), "write a status from 400 to 599");
                0
            }
            (protocol, Refuse::Status(_)) => {
                self.problem(Some(index), place, format!("{protocol} has no status"), "write refuse: true");
                0
            }
        }
    }

    fn target(&mut self, index: usize, place: &str, name: &str) -> u32 {
        let named = self.names.get(name).copied();
        match named {
            Some(target) if target > index => return target as u32,
            Some(_) => {
                self.problem(Some(index), place, format!("'{name}' is no later rule"), "write the name of a later rule")
            }
            None => {
                self.problem(Some(index), place, format!("no rule is named '{name}'"), "write the name of a later rule")
            }
        }
        0
    }

    fn matches(&mut self, index: usize, rule: &'c Rule) {
        match &rule.matches {
            None => self.push(index, Vec::new()),
            Some(Value::Object(mapping)) => self.alternative(index, "match", mapping),
            Some(Value::Array(list)) => {
                if list.is_empty() {
                    self.problem(
                        Some(index),
                        "match",
                        "the list is empty, so that nothing matches",
                        "write a mapping, or leave match out to match everything",
                    );
                }
                for (i, entry) in list.iter().enumerate() {
                    let place = format!("match[{i}]");
                    match entry {
                        Value::Object(mapping) => self.alternative(index, &place, mapping),
                        _ => {
                            self.problem(Some(index), &place, "the entry is no mapping of fields", "write {path: ...}")
                        }
                    }
                }
            }
            Some(_) => self.problem(Some(index), "match", "match is neither a mapping nor a list", "write {path: ...}"),
        }
    }

    fn push(&mut self, rule: usize, mut conds: Vec<Cond>) {
        conds.sort_by_key(|cond| self.fields[cond.field.0 as usize].is_late());
        let heads = conds.iter().filter(|cond| !self.fields[cond.field.0 as usize].is_late()).count();
        self.alternatives.push(Alternative { rule: rule as u32, conds, heads, late_cover: None });
    }

    fn alternative(&mut self, index: usize, place: &str, mapping: &Mapping) {
        let mut conds = Vec::new();
        let known = fields_of(self.content.protocol);
        for (name, value) in mapping {
            let place = format!("{place}.{name}");
            if !known.contains(&name.as_str()) {
                let message = format!("a rule of {} has no field '{name}'", self.content.protocol);
                self.problem(Some(index), &place, message, format!("write one of {}", known.join(", ")));
                continue;
            }
            match (Field::single(name), value) {
                (Some(field), _) => self.cond(index, &place, field, value, &mut conds),
                (None, Value::Object(names)) if !names.is_empty() => {
                    for (key, value) in names {
                        let field = Field::named(name, key).expect("known names are single or named");
                        let place = format!("{place}.{key}");
                        match paths::check(&field) {
                            Ok(()) => self.cond(index, &place, field, value, &mut conds),
                            Err((message, remedy)) => self.problem(Some(index), &place, message, remedy),
                        }
                    }
                }
                _ => {
                    self.problem(
                        Some(index),
                        &place,
                        format!("{name} needs a mapping of names"),
                        format!("write {name}: {{NAME: VALUE}}"),
                    );
                }
            }
        }
        self.push(index, conds);
    }

    fn cond(&mut self, index: usize, place: &str, field: Field, value: &Value, conds: &mut Vec<Cond>) {
        match forms::conditions(field.kind(), value) {
            Ok(list) => {
                let field = self.field(field);
                conds.extend(list.into_iter().map(|branches| Cond { field, branches }));
            }
            Err(mistake) => {
                self.problem(Some(index), &format!("{place}{}", mistake.place), mistake.message, mistake.remedy);
            }
        }
    }

    fn field(&mut self, field: Field) -> FieldId {
        let new = FieldId(self.fields.len() as u32);
        let id = *self.ids.entry(field.clone()).or_insert(new);
        if id == new {
            self.fields.push(field);
        }
        id
    }
}
