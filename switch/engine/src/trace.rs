//! The trace of a packet: the events of its processing in the pipeline.

/// An event in the trace of a packet. The events of a trace are in the order of execution.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// A pass through parser and ingress begins.
    Ingress {
        /// The packet's ingress port.
        port: u32,
        /// `standard_metadata.instance_type`: 0 normal, 1 ingress clone, 2 egress clone, 3 coalesced, 4 recirculated, 5
        /// replicated, 6 resubmitted.
        instance_type: u32,
        /// The frame's length in bytes.
        length: usize,
    },
    /// The parser entered the state with this name.
    ParserState(String),
    /// The parser extracted the header with this name.
    Extract(String),
    /// The parser stopped with this error.
    ParserError(String),
    /// The verification after the parser found that the checksum with this name is wrong.
    ChecksumError(String),
    /// A key was looked up in a table.
    Table {
        /// The table's name.
        table: String,
        /// The key's fields, each as name and hexadecimal value.
        key: Vec<(String, String)>,
        /// The matching entry; `None` if no entry matches and the default action runs.
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
        /// The P4 source text if the JSON contains it, otherwise the name of the control flow node.
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
        /// The port by which the frame is sent.
        port: u32,
        /// The frame's length in bytes.
        length: usize,
    },
    /// The packet, a copy of the packet, or a digest message is lost. The text states the reason.
    Drop(String),
}
