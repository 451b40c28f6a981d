//! Batches of updates to a ternary table of the test program `everything.p4`. One entry of the table matches every
//! frame that the example sends.

use sluice_p4runtime::proto::p4::v1 as p4;

use p4::update::Type::{Delete, Insert, Modify};

/// The P4Info id of the ternary table.
pub const TERNARY: u32 = 0x0200_0003;
/// The P4Info id of the action that forwards to a port.
const FORWARD: u32 = 0x0100_0002;
/// The source MAC address of the frames, as a number.
pub const SOURCE: u32 = 7;

/// Returns an entry that forwards frames from the MAC address `source` to `port`.
pub fn entry(source: u32, priority: i32, port: u8) -> p4::TableEntry {
    let value = [&[0, 0][..], &source.to_be_bytes()].concat();
    let ternary = p4::field_match::Ternary { value, mask: vec![0xff; 6] };
    let ternary = Some(p4::field_match::FieldMatchType::Ternary(ternary));
    let param = p4::action::Param { param_id: 1, value: vec![port] };
    let action = p4::Action { action_id: FORWARD, params: vec![param] };
    p4::TableEntry {
        table_id: TERNARY,
        r#match: vec![p4::FieldMatch { field_id: 1, field_match_type: ternary }],
        priority,
        action: Some(p4::TableAction { r#type: Some(p4::table_action::Type::Action(action)) }),
        ..Default::default()
    }
}

pub fn update(kind: p4::update::Type, entry: p4::TableEntry) -> p4::Update {
    let entity = p4::Entity { entity: Some(p4::entity::Entity::TableEntry(entry)) };
    p4::Update { r#type: kind.into(), entity: Some(entity) }
}

/// Returns a batch of about `size` updates that leaves the number of the table's entries unchanged. The first update
/// modifies the entry that matches the frames, so that it forwards to `port`. The other updates insert entries that
/// match no frame and delete them again.
pub fn batch(size: usize, port: u8) -> Vec<p4::Update> {
    let other_sources = (1..=(size as u32 - 1) / 2).map(|number| 0x0100_0000 + number);
    let mut updates = vec![update(Modify, entry(SOURCE, 1, port))];
    updates.extend(other_sources.clone().map(|source| update(Insert, entry(source, 2, port))));
    updates.extend(other_sources.map(|source| update(Delete, entry(source, 2, port))));
    updates
}
