//! JSON in pieces: a scanner of the grammar, and a stack of frames that knows where rules look.

mod scan;

use scan::{Scanner, Sink};

use super::{Asking, Flow, go_on, refuse};
use crate::paths::NodeId;

#[derive(Debug)]
pub(crate) struct Json {
    scanner: Scanner,
    place: Place,
}

/// Where in the document, as far as rules look there.
#[derive(Debug)]
struct Place {
    frames: Vec<Frame>,
    nodes: Vec<NodeId>,
    /// The nodes at which the next value is.
    next: Vec<NodeId>,
}

/// An open object or array: where its nodes begin.
#[derive(Debug)]
struct Frame {
    nodes: usize,
    /// The next element's index, in an array.
    index: Option<u32>,
}

impl Json {
    pub(crate) fn new(depth: usize) -> Json {
        let place = Place { frames: Vec::new(), nodes: Vec::new(), next: vec![0] };
        Json { scanner: Scanner::new(depth), place }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], asking: &mut Asking) -> Flow {
        let read = self.scanner.push(bytes, &mut Reading { place: &mut self.place, asking });
        read.err().unwrap_or(Flow::Continue(()))
    }

    pub(crate) fn end(&mut self, asking: &mut Asking) -> Flow {
        let read = self.scanner.end(&mut Reading { place: &mut self.place, asking });
        read.err().unwrap_or(Flow::Continue(()))
    }
}

impl Place {
    /// Where the next value is if it is an element of an array: an index, `*`, or nothing in the path.
    fn element(&mut self, asking: &Asking) {
        let Some(Frame { nodes, index: Some(index) }) = self.frames.last_mut() else { return };
        self.next.clear();
        let number = *index;
        *index += 1;
        if *nodes == self.nodes.len() {
            return;
        }
        let text = number.to_string();
        for &node in &self.nodes[*nodes..] {
            self.next.push(node);
            enter(asking, node, text.as_bytes(), &mut self.next);
            enter(asking, node, b"*", &mut self.next);
        }
        // Paths meet again: without this, arrays in each other would multiply them.
        self.next.sort_unstable();
        self.next.dedup();
    }
}

/// A place, and the rules that are asked there.
struct Reading<'j, 'a, 'r> {
    place: &'j mut Place,
    asking: &'a mut Asking<'r>,
}

impl Sink for Reading<'_, '_, '_> {
    fn open(&mut self, array: bool) {
        let place = &mut *self.place;
        place.element(self.asking);
        place.frames.push(Frame { nodes: place.nodes.len(), index: array.then_some(0) });
        place.nodes.append(&mut place.next);
    }

    fn close(&mut self) {
        let start = self.place.frames.pop().map_or(0, |frame| frame.nodes);
        self.place.nodes.truncate(start);
    }

    fn name(&mut self, name: &[u8]) -> Result<(), Flow> {
        if std::str::from_utf8(name).is_err() {
            return Err(no_utf8());
        }
        let place = &mut *self.place;
        let start = place.frames.last().map_or(0, |frame| frame.nodes);
        place.next.clear();
        for &node in &place.nodes[start..] {
            enter(self.asking, node, name, &mut place.next);
        }
        Ok(())
    }

    fn wants(&mut self) -> bool {
        self.place.element(self.asking);
        let paths = &self.asking.rules.json;
        self.place.next.iter().any(|&node| !paths.fields(node).is_empty())
    }

    fn value(&mut self, text: &[u8]) -> Result<(), Flow> {
        if std::str::from_utf8(text).is_err() {
            return Err(no_utf8());
        }
        let mut next = std::mem::take(&mut self.place.next);
        let rules = self.asking.rules;
        for field in next.iter().flat_map(|&node| rules.json.fields(node)) {
            go_on(self.asking.observe(*field, text))?;
        }
        next.clear();
        self.place.next = next;
        Ok(())
    }
}

fn no_utf8() -> Flow {
    refuse("the JSON is no UTF-8")
}

fn enter(asking: &Asking, node: NodeId, name: &[u8], next: &mut Vec<NodeId>) {
    if let Some(named) = asking.rules.json.named(node, name) {
        next.extend(named.at(1));
    }
}
