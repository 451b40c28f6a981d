//! The driver's tables of multicast groups and mirror sessions, which belong to the device and not to a program.

use tonic::Status;

use crate::bfrt;
use crate::client::Driver;
use crate::info::{Info, Table};
use crate::proto::{TableData, TableEntry, TableKey, Update, entity, update::Type};

const NODES: &str = "$pre.node";
const GROUPS: &str = "$pre.mgid";
const SESSIONS: &str = "$mirror.cfg";

/// The tables with their fields.
#[derive(Debug)]
pub struct Replication {
    nodes: Nodes,
    groups: Groups,
    sessions: Sessions,
}

/// A node makes a copy for each of its ports, all with the same instance.
#[derive(Debug)]
struct Nodes {
    id: u32,
    key: u32,
    instance: u32,
    link_groups: u32,
    ports: u32,
}

/// A group has the copies of its nodes.
#[derive(Debug)]
struct Groups {
    id: u32,
    key: u32,
    nodes: u32,
    excluded: u32,
    exclusion_ids: u32,
}

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

/// Where a session's copies go.
#[derive(Debug, Clone, Copy)]
pub enum Towards {
    /// To a port.
    Port(u32),
    /// To the copies of a group.
    Group(u32),
}

impl Replication {
    /// The tables, if the driver has all of them.
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

    /// What a node has.
    pub fn node_data(&self, instance: u16, ports: Vec<u32>) -> TableData {
        let fields = vec![
            bfrt::stream(self.nodes.instance, instance.to_be_bytes()),
            bfrt::numbers(self.nodes.link_groups, Vec::new()),
            bfrt::numbers(self.nodes.ports, ports),
        ];
        TableData { action_id: 0, fields }
    }

    /// What a group has. No port is excluded from its copies.
    pub fn group_data(&self, nodes: Vec<u32>) -> TableData {
        let count = nodes.len();
        let fields = vec![
            bfrt::numbers(self.groups.nodes, nodes),
            bfrt::flags(self.groups.excluded, vec![false; count]),
            bfrt::numbers(self.groups.exclusion_ids, vec![0; count]),
        ];
        TableData { action_id: 0, fields }
    }

    /// What a session has; `length` is the most bytes of a copy.
    pub fn session_data(&self, towards: Towards, class: u32, length: u16) -> TableData {
        let Sessions { action, enabled, direction, port, has_port, group, has_group, class: cos, length: most, .. } =
            self.sessions;
        let mut fields = vec![
            bfrt::flag(enabled, true),
            bfrt::name(direction, "BOTH"),
            bfrt::stream(cos, class.to_be_bytes()),
            bfrt::stream(most, length.to_be_bytes()),
        ];
        fields.extend(match towards {
            Towards::Port(number) => [bfrt::stream(port, number.to_be_bytes()), bfrt::flag(has_port, true)],
            Towards::Group(id) => [bfrt::stream(group, (id as u16).to_be_bytes()), bfrt::flag(has_group, true)],
        });
        TableData { action_id: action, fields }
    }

    /// An update of a node.
    pub fn node(&self, kind: Type, id: u32, data: Option<TableData>) -> Update {
        let key = bfrt::number_key(self.nodes.key, id);
        bfrt::update(kind, TableEntry { data, ..bfrt::key_only(self.nodes.id, key) })
    }

    /// An update of a group.
    pub fn group(&self, kind: Type, id: u32, data: Option<TableData>) -> Update {
        bfrt::update(kind, TableEntry { data, ..bfrt::key_only(self.groups.id, short_key(self.groups.key, id)) })
    }

    /// An update of a session.
    pub fn session(&self, kind: Type, id: u32, data: Option<TableData>) -> Update {
        bfrt::update(kind, TableEntry { data, ..bfrt::key_only(self.sessions.id, short_key(self.sessions.key, id)) })
    }
}

/// A key of 16 bits.
fn short_key(field_id: u32, number: u32) -> TableKey {
    TableKey { fields: vec![bfrt::exact(field_id, (number as u16).to_be_bytes())] }
}

/// What clears the tables, with the name of each: groups before the nodes that they have. The driver clears sessions at once, but
/// groups and nodes one by one.
///
/// # Errors
/// When the driver does not answer.
pub async fn clearing(driver: &Driver) -> Result<Vec<(String, Update)>, Status> {
    let Some(tables) = Replication::of(&driver.program()?.fixed) else { return Ok(Vec::new()) };
    let whole = bfrt::update(Type::Delete, bfrt::whole_table(tables.sessions.id));
    let mut updates = vec![(SESSIONS.to_owned(), whole)];
    for (name, id) in [(GROUPS, tables.groups.id), (NODES, tables.nodes.id)] {
        for found in driver.read(vec![bfrt::entry_entity(bfrt::whole_table(id))]).await? {
            let Some(entity::Entity::TableEntry(TableEntry { key: Some(key), .. })) = found.entity else { continue };
            updates.push((name.to_owned(), bfrt::update(Type::Delete, bfrt::key_only(id, key))));
        }
    }
    Ok(updates)
}
