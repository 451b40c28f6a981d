//! The trace of a packet: its events on the way through the pipeline.

/// One event. The events of a trace are in the order of execution.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// A pass through parser and ingress begins.
    Ingress {
        /// The packet's ingress port.
        port: u32,
        /// `standard_metadata.instance_type`: 0 normal, 1 ingress clone, 2 egress clone, 3 coalesced, 4 recirculated, 5 replicated, 6 resubmitted.
        instance_type: u32,
        /// Length in bytes.
        length: usize,
    },
    /// A parser state was entered.
    ParserState(String),
    /// A header was extracted.
    Extract(String),
    /// The parser stopped with this error.
    ParserError(String),
    /// A checksum that the parser verifies did not match.
    ChecksumError(String),
    /// A table was looked up.
    Table {
        /// The table's name.
        table: String,
        /// The key's fields, each as name and hexadecimal value.
        key: Vec<(String, String)>,
        /// The matching entry; `None` if none matches and the default action runs.
        entry: Option<String>,
    },
    /// An action runs.
    Action {
        /// The action's name.
        action: String,
        /// The action's parameters, each as name and hexadecimal value.
        params: Vec<(String, String)>,
    },
    /// A condition was evaluated.
    Condition {
        /// Source text where the JSON has it, otherwise the name of the control flow node.
        condition: String,
        /// The condition's value.
        value: bool,
    },
    /// The text of a `log_msg` call.
    Log(String),
    /// Egress begins.
    Egress {
        /// The packet's egress port.
        port: u32,
    },
    /// A frame is passed to the sink.
    Emit {
        /// The port that the frame leaves by.
        port: u32,
        /// Length in bytes.
        length: usize,
    },
    /// The packet, a copy of it or a message about it to the control plane is lost; the text states why.
    Drop(String),
}
