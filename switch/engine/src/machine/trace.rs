//! What a traced run notes down.

use super::Machine;
use crate::code::{Code, Note};
use crate::control::{Entry, KeyField};
use crate::layout::{FieldRef, Slots};
use crate::program::{Program, TableInfo};
use crate::trace::TraceEvent;
use crate::wide;

impl Machine {
    #[cold]
    pub fn run_note(&mut self, p: &Program, code: &Code, s: &Slots, index: usize) {
        let event = match &code.notes[index] {
            Note::ParserState(name) => TraceEvent::ParserState(name.clone()),
            Note::Extract(name) => TraceEvent::Extract(name.clone()),
            Note::Condition { text, a } => {
                TraceEvent::Condition { condition: text.clone(), value: s[usize::from(*a)] != 0 }
            }
            Note::Action(id) => {
                let action = &p.actions[*id as usize];
                let value = |f: &FieldRef| format!("0x{}", hex(&wide::to_bytes(s, *f)));
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
