//! The trace of packets: a line of text for each processing step, or a JSON object for each packet.

use serde_json::{Map, Value, json};
use sluice_engine::TraceEvent;

use crate::args::TraceFormat;
use crate::logging::PACKETS;

/// Logs the trace of one packet. `packet` is its number among the traced packets, and `port` the port that received it.
pub fn log(format: TraceFormat, packet: u64, port: u32, events: &[TraceEvent]) {
    if format == TraceFormat::Json {
        let steps: Vec<_> = events.iter().map(step).collect();
        tracing::trace!(target: PACKETS, "{}", json!({ "packet": packet, "port": port, "steps": steps }));
        return;
    }
    tracing::trace!(target: PACKETS, "packet {packet}: in by port {port}");
    for event in events {
        tracing::trace!(target: PACKETS, "packet {packet}: {}", line(event));
    }
}

/// Returns a processing step as a JSON object. The field `step` contains its kind.
fn step(event: &TraceEvent) -> Value {
    match event {
        TraceEvent::Ingress { port, instance_type, length } => {
            json!({ "step": "ingress", "port": port, "instance_type": instance_type, "length": length })
        }
        TraceEvent::ParserState(state) => json!({ "step": "parser_state", "state": state }),
        TraceEvent::Extract(header) => json!({ "step": "extract", "header": header }),
        TraceEvent::ParserError(error) => json!({ "step": "parser_error", "error": error }),
        TraceEvent::ChecksumError(checksum) => json!({ "step": "checksum_error", "checksum": checksum }),
        TraceEvent::Table { table, key, entry } => {
            json!({ "step": "table", "table": table, "key": object(key), "hit": entry.is_some(), "entry": entry })
        }
        TraceEvent::Action { action, params } => {
            json!({ "step": "action", "action": action, "params": object(params) })
        }
        TraceEvent::Condition { condition, value } => {
            json!({ "step": "condition", "condition": condition, "value": value })
        }
        TraceEvent::Log(text) => json!({ "step": "log", "text": text }),
        TraceEvent::Egress { port } => json!({ "step": "egress", "port": port }),
        TraceEvent::Emit { port, length } => json!({ "step": "emit", "port": port, "length": length }),
        TraceEvent::Drop(reason) => json!({ "step": "drop", "reason": reason }),
        other => json!({ "step": "other", "text": format!("{other:?}") }),
    }
}

fn object(values: &[(String, String)]) -> Map<String, Value> {
    values.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

fn line(event: &TraceEvent) -> String {
    match event {
        TraceEvent::Ingress { port, instance_type, length } => {
            format!("ingress, port {port}, {length} bytes{}", instance(*instance_type))
        }
        TraceEvent::ParserState(state) => format!("parser state {state}"),
        TraceEvent::Extract(header) => format!("extracted {header}"),
        TraceEvent::ParserError(error) => format!("parser error {error}"),
        TraceEvent::ChecksumError(checksum) => format!("wrong checksum {checksum}"),
        TraceEvent::Table { table, key, entry } => match entry {
            Some(entry) => format!("table {table}, key ({}): hit {entry}", list(key)),
            None => format!("table {table}, key ({}): miss", list(key)),
        },
        TraceEvent::Action { action, params } => format!("action {action}({})", list(params)),
        TraceEvent::Condition { condition, value } => format!("condition {condition}: {value}"),
        TraceEvent::Log(text) => format!("log_msg {text}"),
        TraceEvent::Egress { port } => format!("egress, port {port}"),
        TraceEvent::Emit { port, length } => format!("out by port {port}, {length} bytes"),
        TraceEvent::Drop(reason) => format!("dropped: {reason}"),
        other => format!("{other:?}"),
    }
}

fn list(values: &[(String, String)]) -> String {
    values.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

fn instance(instance_type: u32) -> &'static str {
    match instance_type {
        0 => "",
        1 => ", a clone from ingress",
        2 => ", a clone from egress",
        4 => ", recirculated",
        5 => ", a multicast copy",
        6 => ", resubmitted",
        _ => ", of another kind",
    }
}
