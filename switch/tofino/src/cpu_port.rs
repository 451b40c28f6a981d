//! What makes a port of the device the CPU's: the program's parser looks for a controller's header on it, and the traffic manager
//! sends copies for the CPU to it. Both are the driver's to set, so that no program is compiled for the number of one chip's port.
//! Of the two tables one takes inserts, the other modifications.

use crate::bfrt;
use crate::info::{Info, Table};
use crate::proto::{DataField, TableData, Update, update::Type};

/// The lowest bit of the CPU port's metadata, by which a program knows it. The metadata have 64 bits on Tofino, 128 on Tofino 2.
const FROM_CPU: u128 = 1;
/// The driver's table of what the traffic manager does at a port.
const TRAFFIC_MANAGER_PORTS: &str = "$pre.port";

/// What is set at a port, each with its place for an error message. A program without port metadata needs no more than the copies.
pub fn settings(program: &Info, driver: &Info, port: u32) -> Vec<(String, Update)> {
    let metadata = program.tables.iter().filter(|table| table.table_type == "PortMetadata").filter_map(|table| {
        let number = port.to_be_bytes();
        let field = table.data_field("$DEFAULT_FIELD")?;
        let value = FROM_CPU.to_be_bytes();
        let (key, value) = (last(&number, table.key.first()?.kind.bits()?)?, last(&value, field.kind.bits()?)?);
        set(Type::Insert, table, key, bfrt::stream(field.id, value))
    });
    let ports = driver.tables.iter().chain(&program.tables).find(|table| table.name == TRAFFIC_MANAGER_PORTS);
    let copies = ports.and_then(|table| {
        let enabled = bfrt::flag(table.data_id("$COPY_TO_CPU_PORT_ENABLE")?, true);
        set(Type::Modify, table, &port.to_be_bytes(), enabled)
    });
    metadata.chain(copies).collect()
}

/// As many of the last bytes as a field of so many bits has; `None` if the field is wider than these bytes: then nothing is set.
fn last(bytes: &[u8], bits: u32) -> Option<&[u8]> {
    bytes.get(bytes.len().checked_sub(bits.div_ceil(8) as usize)?..)
}

fn set(kind: Type, table: &Table, key: &[u8], field: DataField) -> Option<(String, Update)> {
    let key = crate::proto::TableKey { fields: vec![bfrt::exact(table.key.first()?.id, key)] };
    let data = TableData { fields: vec![field], ..Default::default() };
    Some((table.name.clone(), bfrt::update(kind, bfrt::entry(table.id, key, data))))
}
