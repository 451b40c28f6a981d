//! Constructors and accessors of the messages of BF Runtime.

use crate::proto::{
    DataField, Entity, KeyField, TableData, TableEntry, TableFlags, TableKey, TableOperation, Update, data_field,
    entity, key_field, update,
};

/// Returns an exact field of a key.
pub fn exact(field_id: u32, value: impl Into<Vec<u8>>) -> KeyField {
    let exact = key_field::Exact { value: value.into() };
    KeyField { field_id, match_type: Some(key_field::MatchType::Exact(exact)) }
}

/// Returns a key of one exact 32-bit field, such as the index of a cell or the id of a member or group.
pub fn number_key(field_id: u32, number: u32) -> TableKey {
    TableKey { fields: vec![exact(field_id, number.to_be_bytes())] }
}

/// Returns a data field whose value is bytes.
pub fn stream(field_id: u32, value: impl Into<Vec<u8>>) -> DataField {
    DataField { field_id, value: Some(data_field::Value::Stream(value.into())) }
}

/// Returns a data field whose value is a list of numbers.
pub fn numbers(field_id: u32, val: Vec<u32>) -> DataField {
    DataField { field_id, value: Some(data_field::Value::IntArrVal(data_field::IntArray { val })) }
}

/// Returns a data field whose value is a list of flags.
pub fn flags(field_id: u32, val: Vec<bool>) -> DataField {
    DataField { field_id, value: Some(data_field::Value::BoolArrVal(data_field::BoolArray { val })) }
}

/// Returns a data field whose value is a flag.
pub fn flag(field_id: u32, value: bool) -> DataField {
    DataField { field_id, value: Some(data_field::Value::BoolVal(value)) }
}

/// Returns a data field whose value is a string.
pub fn name(field_id: u32, value: &str) -> DataField {
    DataField { field_id, value: Some(data_field::Value::StrVal(value.to_owned())) }
}

/// Returns a ternary field of a key.
pub fn ternary(field_id: u32, value: Vec<u8>, mask: Vec<u8>) -> KeyField {
    KeyField { field_id, match_type: Some(key_field::MatchType::Ternary(key_field::Ternary { value, mask })) }
}

/// Returns the bytes of a data field; `None` if its value is of another kind.
pub fn bytes(field: &DataField) -> Option<&[u8]> {
    match &field.value {
        Some(data_field::Value::Stream(bytes)) => Some(bytes),
        _ => None,
    }
}

/// Returns the value of a big-endian number of at most 64 bits.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns an update of one entry.
pub fn update(kind: update::Type, entry: TableEntry) -> Update {
    Update { r#type: kind as i32, entity: Some(entry_entity(entry)) }
}

/// Returns the entity that contains an entry.
pub fn entry_entity(entry: TableEntry) -> Entity {
    Entity { entity: Some(entity::Entity::TableEntry(entry)) }
}

/// Returns an entry of a table.
pub fn entry(table_id: u32, key: TableKey, data: TableData) -> TableEntry {
    TableEntry { table_id, key: Some(key), data: Some(data), ..Default::default() }
}

/// Returns an entry without data, with which a client deletes or reads the entry of this key.
pub fn key_only(table_id: u32, key: TableKey) -> TableEntry {
    TableEntry { table_id, key: Some(key), ..Default::default() }
}

/// Returns the entity for a read of one array cell: from the device if `from_hw` is set, otherwise from the driver's
/// copy of the array.
pub fn cell(table_id: u32, key_field: u32, index: u32, from_hw: bool) -> Entity {
    let table_flags = from_hw.then(|| TableFlags { from_hw, ..Default::default() });
    entry_entity(TableEntry { table_flags, ..key_only(table_id, number_key(key_field, index)) })
}

/// Returns the pattern that matches all entries of a table. A deletion of the pattern clears the table.
pub fn whole_table(table_id: u32) -> TableEntry {
    TableEntry { table_id, ..Default::default() }
}

/// Returns the default entry of a table.
pub fn default_entry(table_id: u32, data: Option<TableData>) -> TableEntry {
    TableEntry { table_id, data, is_default_entry: true, ..Default::default() }
}

/// Returns the update that makes the driver copy the counts or cells of a table from the device. `operation` is the
/// driver's name of this operation for the table, such as `Sync`.
pub fn sync(table_id: u32, operation: &str) -> Update {
    let operation = TableOperation { table_id, table_operations_type: operation.to_owned() };
    Update {
        r#type: update::Type::Insert as i32,
        entity: Some(Entity { entity: Some(entity::Entity::TableOperation(operation)) }),
    }
}
