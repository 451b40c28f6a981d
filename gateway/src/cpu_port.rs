//! Configures the CPU port of the device. On this port the program's parser must expect packet-out headers, and the
//! traffic manager must send copies for the CPU to this port. Both settings are entries in tables of the driver, not
//! parts of the program. So compiled programs do not depend on the port numbers of a chip. In the table for the parser,
//! the entry must be inserted. In the table of the traffic manager, the entry exists already and must be modified.

use crate::bfrt;
use crate::info::{Info, Table};
use crate::proto::{DataField, TableData, Update, update::Type};

/// The lowest bit of a port's metadata, by which the program recognises the CPU port. Port metadata have 64 bits on
/// Tofino and 128 on Tofino 2.
const FROM_CPU: u128 = 1;
/// Name of the driver's table with the traffic manager's settings for each port.
const TRAFFIC_MANAGER_PORTS: &str = "$pre.port";

/// Returns the updates that make `port` the CPU port, each with the name of its table for error messages. A program
/// without port metadata needs only the update of the traffic manager.
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

/// Returns the last bytes of a value, as many as a field of `bits` bits has. Returns `None` if the field is wider than
/// the value, so that the port is not configured.
fn last(bytes: &[u8], bits: u32) -> Option<&[u8]> {
    bytes.get(bytes.len().checked_sub(bits.div_ceil(8) as usize)?..)
}

/// Returns the table's name, and the update (`kind`) that sets one field of the entry with this exact key; `None` if
/// the table has no key.
fn set(kind: Type, table: &Table, key: &[u8], field: DataField) -> Option<(String, Update)> {
    let key = crate::proto::TableKey { fields: vec![bfrt::exact(table.key.first()?.id, key)] };
    let data = TableData { fields: vec![field], ..Default::default() };
    Some((table.name.clone(), bfrt::update(kind, bfrt::entry(table.id, key, data))))
}
