//! Messages of BF Runtime, made of what they say.

use crate::proto::{
    DataField, Entity, KeyField, TableData, TableEntry, TableFlags, TableKey, TableOperation, Update, data_field,
    entity, key_field, update,
};

/// An exact field of a key.
pub fn exact(field_id: u32, value: impl Into<Vec<u8>>) -> KeyField {
    let exact = key_field::Exact { value: value.into() };
    KeyField { field_id, match_type: Some(key_field::MatchType::Exact(exact)) }
}

/// A key of one exact field of 32 bits: an index, a member or a group.
pub fn number_key(field_id: u32, number: u32) -> TableKey {
    TableKey { fields: vec![exact(field_id, number.to_be_bytes())] }
}

/// A field that is bytes on the wire.
pub fn stream(field_id: u32, value: impl Into<Vec<u8>>) -> DataField {
    DataField { field_id, value: Some(data_field::Value::Stream(value.into())) }
}

/// A field that is a list of numbers.
pub fn numbers(field_id: u32, val: Vec<u32>) -> DataField {
    DataField { field_id, value: Some(data_field::Value::IntArrVal(data_field::IntArray { val })) }
}

/// A field that is a list of flags.
pub fn flags(field_id: u32, val: Vec<bool>) -> DataField {
    DataField { field_id, value: Some(data_field::Value::BoolArrVal(data_field::BoolArray { val })) }
}

/// A field that is a flag.
pub fn flag(field_id: u32, value: bool) -> DataField {
    DataField { field_id, value: Some(data_field::Value::BoolVal(value)) }
}

/// A field that is a name.
pub fn name(field_id: u32, value: &str) -> DataField {
    DataField { field_id, value: Some(data_field::Value::StrVal(value.to_owned())) }
}

/// A ternary field of a key.
pub fn ternary(field_id: u32, value: Vec<u8>, mask: Vec<u8>) -> KeyField {
    KeyField { field_id, match_type: Some(key_field::MatchType::Ternary(key_field::Ternary { value, mask })) }
}

/// The bytes of a field.
pub fn bytes(field: &DataField) -> Option<&[u8]> {
    match &field.value {
        Some(data_field::Value::Stream(bytes)) => Some(bytes),
        _ => None,
    }
}

/// A number of at most 64 bits.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// An update of one entry.
pub fn update(kind: update::Type, entry: TableEntry) -> Update {
    Update { r#type: kind as i32, entity: Some(entry_entity(entry)) }
}

/// An entry as an entity.
pub fn entry_entity(entry: TableEntry) -> Entity {
    Entity { entity: Some(entity::Entity::TableEntry(entry)) }
}

/// An entry of a table.
pub fn entry(table_id: u32, key: TableKey, data: TableData) -> TableEntry {
    TableEntry { table_id, key: Some(key), data: Some(data), ..Default::default() }
}

/// An entry named by its key alone.
pub fn key_only(table_id: u32, key: TableKey) -> TableEntry {
    TableEntry { table_id, key: Some(key), ..Default::default() }
}

/// A cell of an array, to read: from the device, or from what the driver has copied of it.
pub fn cell(table_id: u32, key_field: u32, index: u32, from_hw: bool) -> Entity {
    let table_flags = from_hw.then(|| TableFlags { from_hw, ..Default::default() });
    entry_entity(TableEntry { table_flags, ..key_only(table_id, number_key(key_field, index)) })
}

/// All entries of a table: deleting this clears it.
pub fn whole_table(table_id: u32) -> TableEntry {
    TableEntry { table_id, ..Default::default() }
}

/// A table's default entry.
pub fn default_entry(table_id: u32, data: Option<TableData>) -> TableEntry {
    TableEntry { table_id, data, is_default_entry: true, ..Default::default() }
}

/// Has the driver copy a table's counts or cells from the device.
pub fn sync(table_id: u32, operation: &str) -> Update {
    let operation = TableOperation { table_id, table_operations_type: operation.to_owned() };
    Update {
        r#type: update::Type::Insert as i32,
        entity: Some(Entity { entity: Some(entity::Entity::TableOperation(operation)) }),
    }
}
