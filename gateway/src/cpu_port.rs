//! Configures the device's CPU port. The program's parser must expect packet-out headers there, and the traffic manager
//! must send copies for the CPU there. Both are set through the driver, so that compiled programs do not depend on a
//! chip's port numbers. One of the two tables takes inserts, the other modifications.

use crate::bfrt;
use crate::info::{Info, Table};
use crate::proto::{DataField, TableData, Update, update::Type};

/// The lowest bit of a port's metadata marks the CPU port for the program. Port metadata have 64 bits on Tofino and 128
/// on Tofino 2.
const FROM_CPU: u128 = 1;
/// The driver's table of the traffic manager's settings by port.
const TRAFFIC_MANAGER_PORTS: &str = "$pre.port";

/// Returns the updates that make `port` the CPU port, each with its table's name for errors. A program without port
/// metadata needs only the traffic manager's.
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

/// Returns the last bytes of a value, as many as a field of `bits` bits holds. `None` if the field is wider than the
/// value; then nothing is set.
fn last(bytes: &[u8], bits: u32) -> Option<&[u8]> {
    bytes.get(bytes.len().checked_sub(bits.div_ceil(8) as usize)?..)
}

/// Returns an update of one field of the entry with this key, with the table's name.
fn set(kind: Type, table: &Table, key: &[u8], field: DataField) -> Option<(String, Update)> {
    let key = crate::proto::TableKey { fields: vec![bfrt::exact(table.key.first()?.id, key)] };
    let data = TableData { fields: vec![field], ..Default::default() };
    Some((table.name.clone(), bfrt::update(kind, bfrt::entry(table.id, key, data))))
}
