//! Records the events of a packet's trace.

use super::Machine;
use crate::bits::to_bytes;
use crate::code::{Code, Note};
use crate::control::{Entry, KeyField};
use crate::layout::{FieldRef, Slots};
use crate::program::{Program, TableInfo};
use crate::trace::TraceEvent;

/// Tracks which action set `egress_spec` to the drop port in the current pipeline.
#[derive(Debug, Clone, Copy, Default)]
pub struct DropPort {
    /// The action that was started last.
    running: Option<u32>,
    /// Whether `egress_spec` was the drop port when the action `running` started.
    chosen: bool,
    /// The action that last set `egress_spec` to the drop port; `None` if the field had this value when the pipeline
    /// started.
    since: Option<u32>,
}

impl Machine {
    /// Records that ingress or egress starts.
    pub fn note_start(&mut self, event: impl FnOnce() -> TraceEvent) {
        if self.trace.is_some() {
            self.drop_port = DropPort::default();
            self.note(event);
        }
    }

    /// Records the event that `egress_spec` is the drop port at the end of this pipeline. The event names the action
    /// that set `egress_spec` to the drop port.
    pub fn note_drop_port(&mut self, p: &Program, s: &Slots, pipeline: &str) {
        if self.trace.is_none() {
            return;
        }
        self.track_drop_port(p, s, None);
        let since = match self.drop_port.since {
            Some(action) => format!("action {}", p.actions[action as usize].info.name),
            None => "its start".to_owned(),
        };
        let port = self.options.drop_port;
        self.note(|| TraceEvent::Drop(format!("drop port {port} at the end of {pipeline}, since {since}")));
    }

    /// Checks whether the action `running` set `egress_spec` to the drop port. The function is called when the action
    /// `next` starts, and at the end of the pipeline.
    fn track_drop_port(&mut self, p: &Program, s: &Slots, next: Option<u32>) {
        let chosen = s[usize::from(p.standard.egress_spec.slot)] == u64::from(self.options.drop_port);
        let DropPort { running, chosen: before, since } = self.drop_port;
        self.drop_port = DropPort { running: next, chosen, since: if chosen && !before { running } else { since } };
    }

    #[cold]
    pub fn run_note(&mut self, p: &Program, code: &Code, s: &Slots, index: usize) {
        let event = match &code.notes[index] {
            Note::ParserState(name) => TraceEvent::ParserState(name.clone()),
            Note::Extract(name) => TraceEvent::Extract(name.clone()),
            Note::Condition { text, a } => {
                TraceEvent::Condition { condition: text.clone(), value: s[usize::from(*a)] != 0 }
            }
            Note::Action(id) => {
                self.track_drop_port(p, s, Some(*id));
                let action = &p.actions[*id as usize];
                let value = |f: &FieldRef| format!("0x{}", hex(&to_bytes(s, *f)));
                let params =
                    action.info.params.iter().zip(&action.params).map(|(i, f)| (i.name.clone(), value(f))).collect();
                TraceEvent::Action { action: action.info.name.clone(), params }
            }
        };
        self.note(|| event);
    }

    #[cold]
    pub fn trace_table(&mut self, p: &Program, table: usize, entry: Option<u32>) {
        let ts = &self.tables[table];
        let t = &p.tables[table];
        let values = t.key.values(&ts.key).into_iter().map(|value| format!("0x{}", hex(&value)));
        let key = t.info.keys.iter().map(|k| k.name.clone()).zip(values).collect();
        let entry = entry.and_then(|id| ts.entry(id)).map(|e| describe(&t.info, &e.written));
        let table = t.info.name.clone();
        self.note(|| TraceEvent::Table { table, key, entry });
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn describe(info: &TableInfo, entry: &Entry) -> String {
    let field = |f: &KeyField| match f {
        KeyField::Exact(v) => hex(v),
        KeyField::Lpm { value, prefix_len } => format!("{}/{prefix_len}", hex(value)),
        KeyField::Ternary { value, mask } => format!("{}&&&{}", hex(value), hex(mask)),
        KeyField::Range { low, high } => format!("{}..{}", hex(low), hex(high)),
        KeyField::Optional(v) => v.as_ref().map_or("*".into(), |v| hex(v)),
    };
    let fields: Vec<String> =
        info.keys.iter().zip(&entry.key).map(|(k, f)| format!("{}={}", k.name, field(f))).collect();
    if info.needs_priority { format!("{} priority {}", fields.join(" "), entry.priority) } else { fields.join(" ") }
}
