//! JSON in pieces, by actson.

use actson::feeder::JsonFeeder;
use actson::options::JsonParserOptionsBuilder;
use actson::{JsonEvent, JsonParser};

use super::xml::go_on;
use super::{Asking, Flow, refuse};
use crate::paths::NodeId;

pub(crate) struct Json {
    parser: JsonParser<Feed>,
    frames: Vec<Frame>,
    nodes: Vec<NodeId>,
    /// The nodes at which the next value is.
    next: Vec<NodeId>,
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Json").field("frames", &self.frames).finish_non_exhaustive()
    }
}

/// An open object or array: where its nodes begin.
#[derive(Debug)]
struct Frame {
    nodes: usize,
    /// The next element's index, in an array.
    index: Option<u32>,
}

/// Bytes that are copied at once for the parser, which borrows none.
const PIECE: usize = 4096;

/// The bytes of one piece.
#[derive(Default)]
struct Feed {
    bytes: Vec<u8>,
    at: usize,
    done: bool,
}

impl JsonFeeder for Feed {
    fn has_input(&self) -> bool {
        self.at < self.bytes.len()
    }

    fn is_done(&self) -> bool {
        self.done && !self.has_input()
    }

    fn next_input(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte
    }
}

impl Json {
    pub(crate) fn new(depth: usize) -> Json {
        // The parser counts the document itself as a level.
        let options = JsonParserOptionsBuilder::default().with_max_depth(depth + 1).build();
        let parser = JsonParser::new_with_options(Feed::default(), options);
        Json { parser, frames: Vec::new(), nodes: Vec::new(), next: vec![0] }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], asking: &mut Asking) -> Flow {
        for piece in bytes.chunks(PIECE) {
            let feed = &mut self.parser.feeder;
            feed.bytes.clear();
            feed.bytes.extend_from_slice(piece);
            feed.at = 0;
            self.read(asking)?;
        }
        Flow::Continue(())
    }

    pub(crate) fn end(&mut self, asking: &mut Asking) -> Flow {
        self.parser.feeder.done = true;
        self.read(asking)
    }

    fn read(&mut self, asking: &mut Asking) -> Flow {
        loop {
            let event = match self.parser.next_event() {
                Ok(None | Some(JsonEvent::NeedMoreInput)) => return Flow::Continue(()),
                Ok(Some(event)) => event,
                Err(_) => return refuse("the JSON is malformed, or nested deeper than limits.depth"),
            };
            if let Err(flow) = self.take(event, asking) {
                return flow;
            }
        }
    }

    fn take(&mut self, event: JsonEvent, asking: &mut Asking) -> Result<(), Flow> {
        match event {
            JsonEvent::StartObject | JsonEvent::StartArray => {
                self.element(asking);
                self.frames
                    .push(Frame { nodes: self.nodes.len(), index: (event == JsonEvent::StartArray).then_some(0) });
                self.nodes.append(&mut self.next);
                Ok(())
            }
            JsonEvent::EndObject | JsonEvent::EndArray => {
                let start = self.frames.pop().map_or(0, |frame| frame.nodes);
                self.nodes.truncate(start);
                Ok(())
            }
            JsonEvent::FieldName => {
                let Ok(name) = self.parser.current_str() else { return Err(refuse("the JSON is no UTF-8")) };
                let start = self.frames.last().map_or(0, |frame| frame.nodes);
                self.next.clear();
                for &node in &self.nodes[start..] {
                    enter(asking, node, name.as_bytes(), &mut self.next);
                }
                Ok(())
            }
            _ => self.value(event, asking),
        }
    }

    /// Where the next value is if it is an element of an array: an index, `*`, or nothing in the path.
    fn element(&mut self, asking: &Asking) {
        let Some(Frame { nodes, index: Some(index) }) = self.frames.last_mut() else { return };
        self.next.clear();
        let text = index.to_string();
        *index += 1;
        for &node in &self.nodes[*nodes..] {
            self.next.push(node);
            enter(asking, node, text.as_bytes(), &mut self.next);
            enter(asking, node, b"*", &mut self.next);
        }
    }

    fn value(&mut self, event: JsonEvent, asking: &mut Asking) -> Result<(), Flow> {
        self.element(asking);
        if self.next.is_empty() {
            return Ok(());
        }
        let text = match event {
            JsonEvent::ValueTrue => "true",
            JsonEvent::ValueFalse => "false",
            JsonEvent::ValueNull => "null",
            _ => match self.parser.current_str() {
                Ok(text) => text,
                Err(_) => return Err(refuse("the JSON is no UTF-8")),
            },
        };
        for node in std::mem::take(&mut self.next) {
            for &field in asking.rules.json.fields(node) {
                go_on(asking.observe(field, text.as_bytes()))?;
            }
        }
        Ok(())
    }
}

fn enter(asking: &Asking, node: NodeId, name: &[u8], next: &mut Vec<NodeId>) {
    if let Some(named) = asking.rules.json.named(node, name) {
        next.extend(named.at(1));
    }
}
