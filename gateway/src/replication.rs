//! The driver's tables of multicast groups and mirror sessions, which do not depend on the program.

use tonic::Status;

use crate::bfrt;
use crate::client::Driver;
use crate::info::{Info, Table};
use crate::proto::{TableData, TableEntry, TableKey, Update, entity, update::Type};

/// Name of the driver's table of multicast nodes.
const NODES: &str = "$pre.node";
/// Name of the driver's table of multicast groups.
const GROUPS: &str = "$pre.mgid";
/// Name of the driver's table of mirror sessions.
const SESSIONS: &str = "$mirror.cfg";

/// The tables of multicast nodes, multicast groups and mirror sessions, with the ids of their fields in the driver.
#[derive(Debug)]
pub struct Replication {
    nodes: Nodes,
    groups: Groups,
    sessions: Sessions,
}

/// The table of nodes. A node makes a copy for each of its ports, all with the same instance.
#[derive(Debug)]
struct Nodes {
    id: u32,
    key: u32,
    instance: u32,
    link_groups: u32,
    ports: u32,
}

/// The table of groups. A group consists of nodes.
#[derive(Debug)]
struct Groups {
    id: u32,
    key: u32,
    nodes: u32,
    excluded: u32,
    exclusion_ids: u32,
}

/// The table of mirror sessions.
#[derive(Debug)]
struct Sessions {
    id: u32,
    key: u32,
    action: u32,
    enabled: u32,
    direction: u32,
    port: u32,
    has_port: u32,
    group: u32,
    has_group: u32,
    class: u32,
    length: u32,
}

/// The destination of the copies of a mirror session.
#[derive(Debug, Clone, Copy)]
pub enum Destination {
    /// The copies are sent to one port.
    Port(u32),
    /// The copies are sent to a multicast group.
    Group(u32),
}

impl Replication {
    /// Returns the tables, if the device has all three tables with all fields.
    pub fn of(driver: &Info) -> Option<Self> {
        let table = |name: &str| driver.tables.iter().find(|table| table.name == name);
        let (nodes, groups, sessions) = (table(NODES)?, table(GROUPS)?, table(SESSIONS)?);
        let key = |table: &Table| Some(table.key.first()?.id);
        let action = sessions.action_specs.iter().find(|action| action.name == "$normal")?;
        Some(Self {
            nodes: Nodes {
                id: nodes.id,
                key: key(nodes)?,
                instance: nodes.data_id("$MULTICAST_RID")?,
                link_groups: nodes.data_id("$MULTICAST_LAG_ID")?,
                ports: nodes.data_id("$DEV_PORT")?,
            },
            groups: Groups {
                id: groups.id,
                key: key(groups)?,
                nodes: groups.data_id("$MULTICAST_NODE_ID")?,
                excluded: groups.data_id("$MULTICAST_NODE_L1_XID_VALID")?,
                exclusion_ids: groups.data_id("$MULTICAST_NODE_L1_XID")?,
            },
            sessions: Sessions {
                id: sessions.id,
                key: key(sessions)?,
                action: action.id,
                enabled: sessions.data_id("$session_enable")?,
                direction: sessions.data_id("$direction")?,
                port: sessions.data_id("$ucast_egress_port")?,
                has_port: sessions.data_id("$ucast_egress_port_valid")?,
                group: sessions.data_id("$mcast_grp_a")?,
                has_group: sessions.data_id("$mcast_grp_a_valid")?,
                class: sessions.data_id("$ingress_cos")?,
                length: sessions.data_id("$max_pkt_len")?,
            },
        })
    }

    /// Returns the data of a node.
    pub fn node_data(&self, instance: u16, ports: Vec<u32>) -> TableData {
        let fields = vec![
            bfrt::stream(self.nodes.instance, instance.to_be_bytes()),
            bfrt::numbers(self.nodes.link_groups, Vec::new()),
            bfrt::numbers(self.nodes.ports, ports),
        ];
        TableData { action_id: 0, fields }
    }

    /// Returns the data of a group. The group excludes no port.
    pub fn group_data(&self, nodes: Vec<u32>) -> TableData {
        let count = nodes.len();
        let fields = vec![
            bfrt::numbers(self.groups.nodes, nodes),
            bfrt::flags(self.groups.excluded, vec![false; count]),
            bfrt::numbers(self.groups.exclusion_ids, vec![0; count]),
        ];
        TableData { action_id: 0, fields }
    }

    /// Returns the data of a session. `class` is the class of service of the copies; `length` limits the length of a
    /// copy, in bytes.
    pub fn session_data(&self, destination: Destination, class: u32, length: u16) -> TableData {
        let Sessions {
            action,
            enabled,
            direction,
            port,
            has_port,
            group,
            has_group,
            class: cos,
            length: max_length,
            ..
        } = self.sessions;
        let mut fields = vec![
            bfrt::flag(enabled, true),
            bfrt::name(direction, "BOTH"),
            bfrt::stream(cos, class.to_be_bytes()),
            bfrt::stream(max_length, length.to_be_bytes()),
        ];
        fields.extend(match destination {
            Destination::Port(number) => [bfrt::stream(port, number.to_be_bytes()), bfrt::flag(has_port, true)],
            Destination::Group(id) => [bfrt::stream(group, (id as u16).to_be_bytes()), bfrt::flag(has_group, true)],
        });
        TableData { action_id: action, fields }
    }

    /// Returns the update of the node `id`. `data` is `None` for a deletion.
    pub fn node(&self, kind: Type, id: u32, data: Option<TableData>) -> Update {
        let key = bfrt::number_key(self.nodes.key, id);
        bfrt::update(kind, TableEntry { data, ..bfrt::key_only(self.nodes.id, key) })
    }

    /// Returns the update of the group `id`. `data` is `None` for a deletion.
    pub fn group(&self, kind: Type, id: u32, data: Option<TableData>) -> Update {
        bfrt::update(kind, TableEntry { data, ..bfrt::key_only(self.groups.id, short_key(self.groups.key, id)) })
    }

    /// Returns the update of the session `id`. `data` is `None` for a deletion.
    pub fn session(&self, kind: Type, id: u32, data: Option<TableData>) -> Update {
        bfrt::update(kind, TableEntry { data, ..bfrt::key_only(self.sessions.id, short_key(self.sessions.key, id)) })
    }
}

/// Returns a key of one exact 16-bit field.
fn short_key(field_id: u32, number: u32) -> TableKey {
    TableKey { fields: vec![bfrt::exact(field_id, (number as u16).to_be_bytes())] }
}

/// Returns the updates that delete all mirror sessions, multicast groups and nodes, each with the name of its table;
/// none if the device lacks one of these tables. Groups are deleted before the nodes to which they refer. The driver
/// deletes all sessions in one update, but groups and nodes only one by one.
///
/// # Errors
/// Fails when the driver does not reply, or runs no program.
pub async fn clearing(driver: &Driver) -> Result<Vec<(String, Update)>, Status> {
    let Some(tables) = Replication::of(&driver.program()?.device_info) else { return Ok(Vec::new()) };
    let all_sessions = bfrt::update(Type::Delete, bfrt::whole_table(tables.sessions.id));
    let mut updates = vec![(SESSIONS.to_owned(), all_sessions)];
    for (name, id) in [(GROUPS, tables.groups.id), (NODES, tables.nodes.id)] {
        for node_or_group in driver.read(vec![bfrt::entry_entity(bfrt::whole_table(id))]).await? {
            let Some(entity::Entity::TableEntry(TableEntry { key: Some(key), .. })) = node_or_group.entity else {
                continue;
            };
            updates.push((name.to_owned(), bfrt::update(Type::Delete, bfrt::key_only(id, key))));
        }
    }
    Ok(updates)
}
