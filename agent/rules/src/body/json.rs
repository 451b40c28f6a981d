//! Parses JSON incrementally, with a scanner of the grammar and a stack of frames. A frame contains the positions in
//! the rules' paths (path nodes) that lead to the current place in the document.

mod scan;

use scan::{Scanner, Sink};

use super::evaluation::{BodyEvaluation, Flow, as_result, refuse};
use super::utf8::Utf8;
use crate::paths::NodeId;
use crate::values::allocated;

#[derive(Debug)]
pub(crate) struct Json {
    utf8: Utf8,
    scanner: Scanner,
    place: Place,
}

/// The current place in the document, and the nodes of the rules' paths that lead there.
#[derive(Debug)]
struct Place {
    frames: Vec<Frame>,
    nodes: Vec<NodeId>,
    /// The path nodes that lead to the next value.
    next: Vec<NodeId>,
    /// For each name that has occurred in an open object and that a path contains: the first path node to which the
    /// name leads.
    named: Vec<NodeId>,
}

/// An open object or array: the start of its entries in `nodes` and `named`.
#[derive(Debug)]
struct Frame {
    nodes: usize,
    named: usize,
    /// The index of the next element in an array; none in an object.
    index: Option<u32>,
}

impl Json {
    pub(crate) fn new(depth: usize) -> Json {
        let place = Place { frames: Vec::new(), nodes: Vec::new(), next: vec![0], named: Vec::new() };
        Json { utf8: Utf8::default(), scanner: Scanner::new(depth), place }
    }

    pub(crate) fn memory(&self) -> usize {
        let Place { frames, nodes, next, named } = &self.place;
        self.scanner.memory() + allocated(frames) + allocated(nodes) + allocated(next) + allocated(named)
    }

    /// Parses a piece of the body. The valid bytes before a byte that is not UTF-8 are evaluated first, so the result
    /// does not depend on how the body is divided into pieces.
    pub(crate) fn push(&mut self, bytes: &[u8], evaluation: &mut BodyEvaluation) -> Flow {
        let valid = self.utf8.validate(bytes);
        let read = self.scanner.push(&bytes[..valid.length], &mut RuleSink { place: &mut self.place, evaluation });
        match read {
            Err(flow) => flow,
            Ok(()) if valid.all => Flow::Continue(()),
            Ok(()) => refuse("the JSON is no UTF-8"),
        }
    }

    pub(crate) fn end(&mut self, evaluation: &mut BodyEvaluation) -> Flow {
        let read = self.scanner.end(&mut RuleSink { place: &mut self.place, evaluation });
        read.err().unwrap_or(Flow::Continue(()))
    }
}

impl Place {
    /// Finds the path nodes of the next value if it is an element of an array. The path's step for the array may be the
    /// element's index or `*`, or the path may omit the step.
    fn element(&mut self, evaluation: &BodyEvaluation) {
        let Some(Frame { nodes, index: Some(index), .. }) = self.frames.last_mut() else { return };
        self.next.clear();
        let number = *index;
        *index += 1;
        if *nodes == self.nodes.len() {
            return;
        }
        let text = number.to_string();
        for &node in &self.nodes[*nodes..] {
            self.next.push(node);
            enter(evaluation, node, text.as_bytes(), &mut self.next);
            enter(evaluation, node, b"*", &mut self.next);
        }
        // Several steps may lead to the same node. Without removing duplicates, nested arrays would multiply the
        // entries.
        self.next.sort_unstable();
        self.next.dedup();
    }
}

/// The parser's position in the document, and the evaluation that receives its values.
struct RuleSink<'j, 'a, 'r> {
    place: &'j mut Place,
    evaluation: &'a mut BodyEvaluation<'r>,
}

impl Sink for RuleSink<'_, '_, '_> {
    fn open(&mut self, array: bool) {
        let place = &mut *self.place;
        place.element(self.evaluation);
        let (nodes, named) = (place.nodes.len(), place.named.len());
        place.frames.push(Frame { nodes, named, index: array.then_some(0) });
        place.nodes.append(&mut place.next);
    }

    fn close(&mut self) {
        let (nodes, named) = self.place.frames.pop().map_or((0, 0), |frame| (frame.nodes, frame.named));
        self.place.nodes.truncate(nodes);
        self.place.named.truncate(named);
    }

    fn name(&mut self, name: &[u8]) -> Result<(), Flow> {
        let place = &mut *self.place;
        let (nodes, named) = place.frames.last().map_or((0, 0), |frame| (frame.nodes, frame.named));
        place.next.clear();
        for &node in &place.nodes[nodes..] {
            enter(self.evaluation, node, name, &mut place.next);
        }
        // Equal names lead to equal nodes, and different names lead to different nodes. So a name whose first node was
        // seen before is a duplicate.
        if let Some(&first) = place.next.first() {
            if place.named[named..].contains(&first) {
                return Err(refuse("a JSON name that a rule asks for comes twice"));
            }
            place.named.push(first);
        }
        Ok(())
    }

    fn needs_text(&mut self) -> bool {
        self.place.element(self.evaluation);
        let paths = &self.evaluation.rules.json;
        self.place.next.iter().any(|&node| !paths.fields(node).is_empty())
    }

    fn value(&mut self, text: &[u8]) -> Result<(), Flow> {
        let mut next = std::mem::take(&mut self.place.next);
        let rules = self.evaluation.rules;
        for field in next.iter().flat_map(|&node| rules.json.fields(node)) {
            as_result(self.evaluation.observe(*field, text))?;
        }
        next.clear();
        self.place.next = next;
        Ok(())
    }
}

fn enter(evaluation: &BodyEvaluation, node: NodeId, name: &[u8], next: &mut Vec<NodeId>) {
    if let Some(named) = evaluation.rules.json.named(node, name) {
        next.extend(named.at(1));
    }
}
