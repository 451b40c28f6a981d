//! Paths of rules, which select values in XML and JSON documents, and the tree of all these paths.

use std::collections::HashMap;

use crate::field::{Field, FieldId};

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PathStep {
    name: String,
    /// The position among the siblings with this name, counted from 1; none if any position matches.
    index: Option<u32>,
}

/// A message about what is wrong with a path, and what to write instead.
pub(crate) type PathMistake = (String, &'static str);

/// Checks a field's path; for fields without a path, checks that the name is not empty.
pub(crate) fn check(field: &Field) -> Result<(), PathMistake> {
    match field {
        Field::Xml(path) => xml_steps(path).map(|_| ()),
        Field::Json(path) => json_steps(path).map(|_| ()),
        Field::Query(name) | Field::Header(name) | Field::Cookie(name) | Field::Form(name) if name.is_empty() => {
            Err(("the name is empty".into(), "write the name of what is matched"))
        }
        _ => Ok(()),
    }
}

/// Splits a path at its dots; `\.` is a dot within a name.
fn split(path: &str) -> Result<Vec<String>, PathMistake> {
    let (mut steps, mut step) = (Vec::new(), String::new());
    let mut chars = path.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => step.extend(chars.next()),
            '.' => steps.push(std::mem::take(&mut step)),
            _ => step.push(c),
        }
    }
    steps.push(step);
    if steps.iter().any(String::is_empty) {
        return Err((format!("'{path}' has an empty step"), "write names with one dot between: purchase.item.price"));
    }
    Ok(steps)
}

/// Parses `purchase:1.item:2.subTotal`: the number behind the last colon is the index. Other colons belong to the
/// name, as in `soap:Body`.
fn xml_steps(path: &str) -> Result<Vec<PathStep>, PathMistake> {
    let step = |text: String| match text.rsplit_once(':') {
        Some((name, index)) if !name.is_empty() && !index.is_empty() && index.bytes().all(|b| b.is_ascii_digit()) => {
            match index.parse() {
                Ok(0) | Err(_) => Err((format!("'{text}' has no such index"), "count from 1: item:1 is the first")),
                Ok(index) => Ok(PathStep { name: name.to_owned(), index: Some(index) }),
            }
        }
        _ => Ok(PathStep { name: text, index: None }),
    };
    split(path)?.into_iter().map(step).collect()
}

/// Parses `order.items.0.price`: names of members and indices of elements. Without an index, any element matches.
fn json_steps(path: &str) -> Result<Vec<PathStep>, PathMistake> {
    Ok(split(path)?.into_iter().map(|name| PathStep { name, index: None }).collect())
}

/// The index of a node in the tree; 0 is the root.
pub(crate) type NodeId = u32;

/// The tree of the paths of a rule set's XML or JSON fields.
#[derive(Debug)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
    /// The number of pairs of node and name that have children. The pairs are numbered, so that callers can count
    /// elements per pair.
    names: u32,
}

#[derive(Debug, Default)]
struct Node {
    children: HashMap<Box<[u8]>, Named>,
    fields: Vec<FieldId>,
    /// Whether every step from the root to this node has an index, so that a document contains at most one value for
    /// the node.
    once: bool,
}

/// The children of a node that have the same name.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// The number of this pair of node and name.
    pub number: u32,
    children: Vec<(Option<u32>, NodeId)>,
}

impl Named {
    /// Returns whether a path selects one of several elements of this name by its index.
    pub(crate) fn is_counted(&self) -> bool {
        self.children.iter().any(|(index, _)| index.is_some())
    }

    /// Returns the children to which the `count`-th element of this name leads.
    pub(crate) fn at(&self, count: u32) -> impl Iterator<Item = NodeId> {
        self.children.iter().filter(move |(index, _)| index.is_none_or(|index| index == count)).map(|&(_, node)| node)
    }
}

impl Paths {
    /// Builds the tree of the paths of all XML fields.
    pub(crate) fn xml(fields: &[Field]) -> Paths {
        Paths::new(fields.iter().map(|field| match field {
            Field::Xml(path) => xml_steps(path).ok(),
            _ => None,
        }))
    }

    /// Builds the tree of the paths of all JSON fields.
    pub(crate) fn json(fields: &[Field]) -> Paths {
        Paths::new(fields.iter().map(|field| match field {
            Field::Json(path) => json_steps(path).ok(),
            _ => None,
        }))
    }

    fn new(fields: impl Iterator<Item = Option<Vec<PathStep>>>) -> Paths {
        let mut paths = Paths { nodes: vec![Node { once: true, ..Node::default() }], names: 0 };
        for (id, steps) in fields.enumerate() {
            let Some(steps) = steps else { continue };
            let node = steps.iter().fold(0, |node, step| paths.child(node, step));
            paths.nodes[node as usize].fields.push(FieldId(id as u32));
        }
        paths
    }

    fn child(&mut self, node: NodeId, step: &PathStep) -> NodeId {
        let (new, names) = (self.nodes.len() as NodeId, &mut self.names);
        let once = self.nodes[node as usize].once && step.index.is_some();
        let named = self.nodes[node as usize].children.entry(step.name.as_bytes().into()).or_insert_with(|| {
            *names += 1;
            Named { number: *names, children: Vec::new() }
        });
        if let Some(&(_, child)) = named.children.iter().find(|(index, _)| *index == step.index) {
            return child;
        }
        named.children.push((step.index, new));
        self.nodes.push(Node { once, ..Node::default() });
        new
    }

    /// Returns whether the tree contains no path.
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Returns the children of a node that have this name, if there are any.
    pub(crate) fn named(&self, node: NodeId, name: &[u8]) -> Option<&Named> {
        self.nodes[node as usize].children.get(name)
    }

    /// Returns the fields whose path ends at a node.
    pub(crate) fn fields(&self, node: NodeId) -> &[FieldId] {
        &self.nodes[node as usize].fields
    }

    /// Returns whether every step to a node has an index, so that a document contains at most one value for the node.
    pub(crate) fn once(&self, node: NodeId) -> bool {
        self.nodes[node as usize].once
    }

    /// Calls `fields` with all fields at and below a node.
    pub(crate) fn below(&self, node: NodeId, fields: &mut impl FnMut(FieldId)) {
        let node = &self.nodes[node as usize];
        node.fields.iter().for_each(|&field| fields(field));
        for &(_, child) in node.children.values().flat_map(|named| &named.children) {
            self.below(child, fields);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_xml() {
        let steps = xml_steps("soap:Body.purchase:1.a\\.b:2").unwrap();
        let texts: Vec<_> = steps.iter().map(|step| (step.name.as_str(), step.index)).collect();
        assert_eq!(texts, [("soap:Body", None), ("purchase", Some(1)), ("a.b", Some(2))]);
        assert!(xml_steps("a:0").is_err());
        assert!(xml_steps("a..b").is_err());
        assert!(xml_steps("a:99999999999").is_err());
    }
}
