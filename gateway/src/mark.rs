//! A mark in the driver that identifies the driver instance to which a gateway has written.
//!
//! The mark is a mirror session. The device has a table of mirror sessions whatever program it runs, and P4Runtime
//! clients cannot write a session of this kind. The session remains when a gateway ends, and disappears when a driver
//! starts or loads a program. A disabled coalescing session mirrors no packets. Its header contains 16 bytes, which the
//! gateway chooses and the driver returns.

use std::io::Read as _;

use tonic::Status;

use crate::bfrt;
use crate::client::Driver;
use crate::info::{Info, Table};
use crate::proto::{DataField, TableData, TableKey, Update, data_field, entity, update::Type};

/// Name of the driver's table of mirror sessions.
const SESSIONS: &str = "$mirror.cfg";
/// The id of the session: the highest id of a coalescing session. P4Runtime's clone sessions are normal sessions.
const SESSION: u16 = 1023;
/// Name of the driver's action for a coalescing session.
const COALESCING: &str = "$coalescing";
/// Name of the field that contains the header of the session.
const HEADER: &str = "$internal_header";

/// Random bytes, which a gateway writes to one driver instance only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(Vec<u8>);

impl Mark {
    /// Returns a new random mark.
    ///
    /// # Errors
    /// Fails when the system provides no random numbers.
    pub fn new() -> std::io::Result<Self> {
        let mut bytes = vec![0; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// Returns the mark that consists of these bytes.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the mark's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Writes this mark to the driver, and replaces an earlier mark. Returns false if there is no table of mirror
    /// sessions with the fields that the mark needs.
    ///
    /// # Errors
    /// Fails with the error of the driver.
    pub async fn write(&self, driver: &Driver) -> Result<bool, Status> {
        let Some([delete, insert]) = driver.program().ok().and_then(|program| self.updates(&program.device_info))
        else {
            return Ok(false);
        };
        // If there is no mark yet, the deletion fails as an invalid argument. Only the result of the insertion matters.
        match driver.write(vec![delete, insert]).await?.pop() {
            Some(Err(fault)) => {
                Err(Status::new(fault.code, format!("marking the driver in {SESSIONS}: {}", fault.message)))
            }
            _ => Ok(true),
        }
    }

    /// Returns the mark in the driver, if there is one.
    ///
    /// # Errors
    /// Fails with the error of the driver.
    pub async fn read(driver: &Driver) -> Result<Option<Self>, Status> {
        let Some((table, header)) = driver.program().ok().and_then(|program| {
            let table = sessions(&program.device_info)?;
            Some((table, field(table, HEADER)?))
        }) else {
            return Ok(None);
        };
        let entries = driver.read(vec![bfrt::entry_entity(bfrt::whole_table(table.id))]).await?;
        let mark = entries.into_iter().find_map(|entity| match entity.entity {
            Some(entity::Entity::TableEntry(entry)) if entry.key == Some(key(table)?) => {
                let data = entry.data?;
                let field =
                    data.fields.iter().find(|field| data.action_id == header.0 && field.field_id == header.1)?;
                Some(Self(bfrt::bytes(field)?.to_vec()))
            }
            _ => None,
        });
        Ok(mark)
    }

    /// Returns the updates that delete the mark in the driver and insert this mark instead; `None` if the device has no
    /// table of mirror sessions with the fields that the mark needs.
    fn updates(&self, device: &Info) -> Option<[Update; 2]> {
        let table = sessions(device)?;
        let (action_id, header) = field(table, HEADER)?;
        let value = |field_id, value| DataField { field_id, value: Some(value) };
        let fields = vec![
            bfrt::stream(header, self.0.clone()),
            // The unit of the length is a word of four bytes.
            bfrt::stream(field(table, "$internal_header_length")?.1, 4_u32.to_be_bytes()),
            value(table.data_id("$session_enable")?, data_field::Value::BoolVal(false)),
            value(table.data_id("$direction")?, data_field::Value::StrVal("EGRESS".to_owned())),
        ];
        let new = bfrt::entry(table.id, key(table)?, TableData { action_id, fields });
        Some([bfrt::update(Type::Delete, bfrt::key_only(table.id, key(table)?)), bfrt::update(Type::Insert, new)])
    }
}

fn sessions(device: &Info) -> Option<&Table> {
    device.tables.iter().find(|table| table.name == SESSIONS)
}

fn key(table: &Table) -> Option<TableKey> {
    Some(TableKey { fields: vec![bfrt::exact(table.key.first()?.id, SESSION.to_be_bytes())] })
}

/// Returns the id of the action for coalescing sessions, and the id of the field `name` of this action.
fn field(table: &Table, name: &str) -> Option<(u32, u32)> {
    let action = table.action_specs.iter().find(|action| action.name == COALESCING)?;
    Some((action.id, action.data.iter().find(|field| field.name == name)?.id))
}
