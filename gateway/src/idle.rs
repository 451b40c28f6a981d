//! Idle timeouts: the driver checks which entries of tables are idle, and notifies the gateway of these entries.

use std::time::Duration;

use prost::Message;
use sluice_engine::TableId;
use sluice_p4runtime::binding::TableBinding;
use sluice_p4runtime::proto::p4::v1 as p4;
use tokio::time::{Instant, sleep_until};

use crate::bfrt;
use crate::load::Loaded;
use crate::proto::{
    self, Entity, IdleTable, IdleTimeoutNotification, TableAttribute, TableData, TableKey, Update, entity, idle_table,
    idle_timeout_notification::NotificationType, key_field::MatchType, table_attribute, update,
};
use crate::shadow::{Place, Shadow};

/// Milliseconds between the driver's checks for idle entries of a table, and the shortest timeout of an entry that the
/// driver accepts.
const INTERVAL: u32 = 1000;
/// Number of nanoseconds in a millisecond.
const NANOSECONDS: u64 = 1_000_000;
/// Time for which notifications are collected, so that many entries are reported in one message.
const COLLECTED: Duration = Duration::from_millis(50);

/// Returns, for each table with idle timeouts, the name of the table and the update that enables the timeouts in the
/// driver. The driver refuses timeouts in other tables.
pub fn aging(loaded: &Loaded) -> Vec<(String, Update)> {
    let tables = loaded.binding.tables.iter().filter(|table| table.idle_timeout);
    let update = |table: &TableBinding| {
        let idle_table = IdleTable {
            ttl_query_interval: INTERVAL,
            max_ttl: u32::MAX,
            min_ttl: INTERVAL,
            idle_table_mode: idle_table::IdleTableMode::IdleTableNotifyMode as i32,
            enable: true,
        };
        let attribute = TableAttribute {
            table_id: loaded.program.tables[table.engine.index()].id,
            attribute: Some(table_attribute::Attribute::IdleTable(idle_table)),
        };
        let entity = Some(Entity { entity: Some(entity::Entity::TableAttribute(attribute)) });
        (table.name.clone(), Update { r#type: update::Type::Insert as i32, entity })
    };
    tables.map(update).collect()
}

/// Returns a timeout in milliseconds, the unit of the driver. The result is rounded up and at least [`INTERVAL`].
pub fn time_to_live(timeout_ns: i64) -> u32 {
    let milliseconds = timeout_ns.max(0).cast_unsigned().div_ceil(NANOSECONDS);
    u32::try_from(milliseconds).unwrap_or(u32::MAX).max(INTERVAL)
}

/// Returns the time since an entry's last hit. It is the entry's timeout minus the remaining time, in milliseconds,
/// which the driver reports in the data field with the id `field`. Returns `None` for an entry without a timeout
/// (`timeout_ns` 0), and if the data or this field is missing.
pub fn since_last_hit(
    timeout_ns: i64,
    field: Option<u32>,
    data: Option<&TableData>,
) -> Option<p4::table_entry::IdleTimeout> {
    if timeout_ns == 0 {
        return None;
    }
    let remaining = data?.fields.iter().find(|data| Some(data.field_id) == field).and_then(bfrt::bytes)?;
    let elapsed = u64::from(time_to_live(timeout_ns)).saturating_sub(bfrt::number(remaining));
    Some(p4::table_entry::IdleTimeout { elapsed_ns: (elapsed * NANOSECONDS).cast_signed() })
}

/// Returns the key and attributes of the entry that a notification reports, in the form in which a controller wrote
/// them. Returns `None` when the entry was deleted meanwhile, or when the notification reports another event.
pub fn entry(loaded: &Loaded, shadow: &Shadow, notification: IdleTimeoutNotification) -> Option<p4::TableEntry> {
    if notification.r#type() != NotificationType::EntryIdle {
        return None;
    }
    let proto::TableEntry { table_id, key, .. } = notification.table_entry?;
    let place = loaded.program.tables.iter().position(|table| table.id == table_id)?;
    let table = &loaded.program.tables[place];
    let ids = table.key.iter().chain(&table.priority);
    let fields = ids.map(|id| key.as_ref()?.fields.iter().find(|field| field.field_id == *id).cloned().map(normalised));
    let key = TableKey { fields: fields.collect::<Option<_>>()? };
    let entry = shadow.entry(&Place::Entry(TableId(place as u32), key.encode_to_vec()))?;
    Some(p4::TableEntry { action: None, meter_config: None, ..entry.wire.clone() })
}

/// Returns a key field in the form in which the gateway writes it. In this form, an optional field that matches any
/// value is empty.
fn normalised(mut field: proto::KeyField) -> proto::KeyField {
    if let Some(MatchType::Optional(optional)) = &mut field.match_type
        && !optional.is_valid
    {
        optional.value.clear();
    }
    field
}

/// Idle entries that the gateway has not yet reported. The gateway collects entries, so that one message reports many
/// of them.
#[derive(Default)]
pub struct Collected {
    entries: Vec<p4::TableEntry>,
    due: Option<Instant>,
}

impl Collected {
    /// Adds an entry. The first entry determines the time at which the entries are due.
    pub fn add(&mut self, entry: p4::TableEntry) {
        self.entries.push(entry);
        self.due.get_or_insert_with(|| Instant::now() + COLLECTED);
    }

    /// Waits until entries are due. Waits forever while there are no entries.
    pub async fn due(&self) {
        match self.due {
            Some(due) => sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Removes and returns all collected entries.
    pub fn take(&mut self) -> Vec<p4::TableEntry> {
        self.due = None;
        std::mem::take(&mut self.entries)
    }
}
