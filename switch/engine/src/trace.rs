//! What happened to one packet, step by step.

/// One step. Order is order of execution.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// A pass through parser and ingress begins.
    Ingress {
        /// Port it came in by.
        port: u32,
        /// `standard_metadata.instance_type`: 0 normal, 1 ingress clone, 2 egress clone, 3 coalesced, 4 recirculated, 5 replicated, 6 resubmitted.
        instance_type: u32,
        /// Bytes.
        length: usize,
    },
    /// A parser state was entered.
    ParserState(String),
    /// A header was extracted.
    Extract(String),
    /// The parser stopped with this error.
    ParserError(String),
    /// A checksum of the parser's did not match.
    ChecksumError(String),
    /// A table was looked up.
    Table {
        /// Its name.
        table: String,
        /// The key's fields, name and hexadecimal value.
        key: Vec<(String, String)>,
        /// The matching entry, or `None`: the default action runs.
        entry: Option<String>,
    },
    /// An action runs.
    Action {
        /// Its name.
        action: String,
        /// Its parameters, name and hexadecimal value.
        params: Vec<(String, String)>,
    },
    /// A condition was evaluated.
    Condition {
        /// Source text when the JSON has it, the node's name otherwise.
        condition: String,
        /// Its value.
        value: bool,
    },
    /// Text of `log_msg`.
    Log(String),
    /// Egress begins.
    Egress {
        /// Port it will go out by.
        port: u32,
    },
    /// A frame is handed to the sink.
    Emit {
        /// By this port.
        port: u32,
        /// Bytes.
        length: usize,
    },
    /// Something is lost here, and why: the packet, a copy of it, or what was to go to the control plane because of it.
    Drop(String),
}
