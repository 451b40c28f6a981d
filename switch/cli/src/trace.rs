//! The per-packet trace as text: one line per step.

use sluice_engine::TraceEvent;

use crate::logging::PACKETS;

/// Logs what happened to one packet.
pub fn log(packet: u64, port: u32, events: &[TraceEvent]) {
    tracing::trace!(target: PACKETS, "packet {packet}: in by port {port}");
    for event in events {
        tracing::trace!(target: PACKETS, "packet {packet}: {}", line(event));
    }
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
            Some(entry) => format!("table {table}, key 0x{key}: hit {entry}"),
            None => format!("table {table}, key 0x{key}: miss"),
        },
        TraceEvent::Action { action, params } => {
            let params: Vec<_> = params.iter().map(|(name, value)| format!("{name} = 0x{value}")).collect();
            format!("action {action}({})", params.join(", "))
        }
        TraceEvent::Condition { condition, value } => format!("condition {condition}: {value}"),
        TraceEvent::Log(text) => format!("log_msg {text}"),
        TraceEvent::Egress { port } => format!("egress, port {port}"),
        TraceEvent::Emit { port, length } => format!("out by port {port}, {length} bytes"),
        TraceEvent::Drop(reason) => format!("dropped: {reason}"),
        other => format!("{other:?}"),
    }
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
