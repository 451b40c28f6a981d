//! A mark in the driver that proves it to be the instance that a gateway has written to.
//!
//! It is a mirror session: the device has that table whatever its program, clients do not reach it, a gateway that goes leaves it,
//! and a driver that starts or loads has none. A coalescing session that is disabled mirrors nothing, and its header has 16 bytes
//! of the gateway's choice, which the driver gives back.

use std::io::Read as _;

use tonic::Status;

use crate::bfrt;
use crate::client::Driver;
use crate::info::{Info, Table};
use crate::proto::{DataField, TableData, TableKey, Update, data_field, entity, update::Type};

/// The driver's table of mirror sessions.
const SESSIONS: &str = "$mirror.cfg";
/// The last of the sessions that can coalesce; P4Runtime's clone sessions are of the other kind.
const SESSION: u16 = 1023;
/// The kind of session that has a header.
const COALESCING: &str = "$coalescing";
const HEADER: &str = "$internal_header";

/// What a gateway has written to a driver, and to no other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark(Vec<u8>);

impl Mark {
    /// One that no driver has.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn new() -> std::io::Result<Self> {
        let mut bytes = vec![0; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// One that was written before.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Writes the mark in place of another; false where the device has no such table.
    ///
    /// # Errors
    /// What the driver says.
    pub async fn write(&self, driver: &Driver) -> Result<bool, Status> {
        let Some([gone, new]) = driver.program().ok().and_then(|program| self.updates(&program.fixed)) else {
            return Ok(false);
        };
        // The first fails where there is no mark yet; the driver calls that an invalid argument.
        match driver.write(vec![gone, new]).await?.pop() {
            Some(Err(fault)) => {
                Err(Status::new(fault.code, format!("marking the driver in {SESSIONS}: {}", fault.message)))
            }
            _ => Ok(true),
        }
    }

    /// The mark that a driver has.
    ///
    /// # Errors
    /// What the driver says.
    pub async fn read(driver: &Driver) -> Result<Option<Self>, Status> {
        let Some((table, header)) = driver.program().ok().and_then(|program| {
            let table = sessions(&program.fixed)?;
            Some((table, field(table, HEADER)?))
        }) else {
            return Ok(None);
        };
        let entries = driver.read(vec![bfrt::entry_entity(bfrt::whole_table(table.id))]).await?;
        let found = entries.into_iter().find_map(|entity| match entity.entity {
            Some(entity::Entity::TableEntry(entry)) if entry.key == Some(key(table)?) => {
                let data = entry.data?;
                let field =
                    data.fields.iter().find(|field| data.action_id == header.0 && field.field_id == header.1)?;
                Some(Self(bfrt::bytes(field)?.to_vec()))
            }
            _ => None,
        });
        Ok(found)
    }

    fn updates(&self, device: &Info) -> Option<[Update; 2]> {
        let table = sessions(device)?;
        let (action_id, header) = field(table, HEADER)?;
        let value = |field_id, value| DataField { field_id, value: Some(value) };
        let fields = vec![
            bfrt::stream(header, self.0.clone()),
            // In words of four bytes.
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

/// The ids of the coalescing kind and of one of its fields.
fn field(table: &Table, name: &str) -> Option<(u32, u32)> {
    let action = table.action_specs.iter().find(|action| action.name == COALESCING)?;
    Some((action.id, action.data.iter().find(|field| field.name == name)?.id))
}
