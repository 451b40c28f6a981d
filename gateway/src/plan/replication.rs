//! Plans writes to multicast groups and clone sessions.
//!
//! The replicas of a group become nodes of the traffic manager, one node for each instance. A session with one replica
//! and instance 0 sends copies to a port. Every other session sends copies to a group that the gateway creates.

use std::collections::BTreeMap;

use sluice_engine::Replica;
use sluice_p4runtime::entity::replication::{check_presence, decode_replicas, neither};
use sluice_p4runtime::entity::{Operation, amount};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;

use super::Planner;
use crate::proto::update::Type;
use crate::replication::{Destination, Replication};
use crate::shadow::{Copies, Place, Value};
use p4::packet_replication_engine_entry::Type as Kind;

/// The first id of the groups that the gateway creates for clone sessions. The id of a group is the sum of this id and
/// the session's id. The groups of clients have lower ids.
const FIRST_SESSION_GROUP: u32 = 0xfc00;
/// The highest id of Tofino's normal mirror sessions, whose ids begin at 1.
const LAST_SESSION: u32 = 1015;
/// The highest port number, because a port number of Tofino has 9 bits.
const LAST_PORT: u32 = 511;
/// The highest class of service, which has 3 bits.
const LAST_CLASS: u32 = 7;
/// The largest limit on the length of a session's copies, in bytes. The field has 14 bits.
const MAX_LENGTH: u16 = (1 << 14) - 1;

impl Planner<'_> {
    pub(super) fn replication(&mut self, operation: Operation, entry: &p4::PacketReplicationEngineEntry) -> Outcome {
        let loaded = self.loaded;
        let tables = loaded.replication.as_ref().ok_or_else(|| {
            Fault::unimplemented("the driver has no tables $pre.node, $pre.mgid and $mirror.cfg; use no replication")
        })?;
        match &entry.r#type {
            Some(Kind::MulticastGroupEntry(group)) => {
                let place = format!("multicast group {}", group.multicast_group_id);
                self.multicast(tables, operation, group).map_err(|fault| fault.within(&place))
            }
            Some(Kind::CloneSessionEntry(session)) => {
                let place = format!("clone session {}", session.session_id);
                self.clone_session(tables, operation, session).map_err(|fault| fault.within(&place))
            }
            None => Err(neither()),
        }
    }

    fn multicast(&mut self, tables: &Replication, operation: Operation, group: &p4::MulticastGroupEntry) -> Outcome {
        let id = group.multicast_group_id;
        let place = Place::Multicast(id);
        let old = match self.shadow.get(&place).cloned() {
            Some(Value::Multicast(_, copies)) => Some(copies),
            _ => None,
        };
        check_presence(operation, old.is_some(), id)?;
        if id >= FIRST_SESSION_GROUP {
            let last = FIRST_SESSION_GROUP - 1;
            return Err(Fault::invalid(format!("the driver's groups for clients are 1 to {last}; give one of these")));
        }
        if operation == Operation::Delete {
            old.into_iter().for_each(|copies| self.delete_copies(tables, copies));
            self.put(place, None);
            return Ok(());
        }
        let copies = self.copies(tables, id, &replicas(&group.replicas)?, old);
        self.put(place, Some(Value::Multicast(group.clone(), copies)));
        Ok(())
    }

    fn clone_session(
        &mut self,
        tables: &Replication,
        operation: Operation,
        session: &p4::CloneSessionEntry,
    ) -> Outcome {
        let id = session.session_id;
        let place = Place::Clone(id);
        let old = match self.shadow.get(&place).cloned() {
            Some(Value::Clone(_, data, copies)) => Some((data, copies)),
            _ => None,
        };
        check_presence(operation, old.is_some(), id)?;
        if id > LAST_SESSION {
            return Err(Fault::invalid(format!("the driver's sessions are 1 to {LAST_SESSION}; give one of these")));
        }
        let (old, old_copies) = old.unzip();
        let old_copies = old_copies.flatten();
        if operation == Operation::Delete {
            let undo = tables.session(Type::Insert, id, old);
            self.step(tables.session(Type::Delete, id, None), Some(undo));
            old_copies.into_iter().for_each(|copies| self.delete_copies(tables, copies));
            self.put(place, None);
            return Ok(());
        }
        if session.class_of_service > LAST_CLASS {
            return Err(Fault::invalid(format!("class_of_service has 3 bits; give 0 to {LAST_CLASS}")));
        }
        let length: u32 = amount(session.packet_length_bytes, "packet_length_bytes")?;
        let length = u16::try_from(length).ok().filter(|length| *length <= MAX_LENGTH);
        let length = length.ok_or_else(|| {
            Fault::invalid(format!(
                "a copy has at most {MAX_LENGTH} bytes; give 0 for whole packets, or no more than that"
            ))
        })?;
        let length = if length == 0 { MAX_LENGTH } else { length };
        let (towards, copies) = match &replicas(&session.replicas)?[..] {
            [Replica { port, instance: 0 }] => {
                // The group is deleted only after the session has stopped using it.
                old_copies.into_iter().for_each(|copies| self.delete_copies_later(tables, copies));
                (Destination::Port(*port), None)
            }
            replicas => {
                let group = FIRST_SESSION_GROUP + id;
                let copies = self.copies(tables, group, replicas, old_copies);
                (Destination::Group(group), Some(copies))
            }
        };
        let data = tables.session_data(towards, session.class_of_service, length);
        let (kind, undo) = match old {
            None => (Type::Insert, tables.session(Type::Delete, id, None)),
            Some(old) => (Type::Modify, tables.session(Type::Modify, id, Some(old))),
        };
        self.step(tables.session(kind, id, Some(data.clone())), Some(undo));
        self.put(place, Some(Value::Clone(session.clone(), data, copies)));
        Ok(())
    }

    /// Creates or changes a group with these replicas. Creates new nodes for it, replaces the old nodes of the group by
    /// the new ones in one update, and then deletes the old nodes.
    fn copies(&mut self, tables: &Replication, group: u32, replicas: &[Replica], old: Option<Copies>) -> Copies {
        let mut ports = BTreeMap::<u16, Vec<u32>>::new();
        for replica in replicas {
            ports.entry(replica.instance).or_default().push(replica.port);
        }
        let mut nodes = Vec::with_capacity(ports.len());
        for (instance, ports) in ports {
            let (id, data) = (self.shadow.new_id(), tables.node_data(instance, ports));
            let undo = tables.node(Type::Delete, id, None);
            self.step(tables.node(Type::Insert, id, Some(data.clone())), Some(undo));
            nodes.push((id, data));
        }
        let data = |nodes: &[(u32, _)]| Some(tables.group_data(nodes.iter().map(|(id, _)| *id).collect()));
        let (kind, undo) = match &old {
            None => (Type::Insert, tables.group(Type::Delete, group, None)),
            Some(old) => (Type::Modify, tables.group(Type::Modify, group, data(&old.nodes))),
        };
        self.step(tables.group(kind, group, data(&nodes)), Some(undo));
        for (id, _) in old.into_iter().flat_map(|old| old.nodes) {
            self.later(tables.node(Type::Delete, id, None));
        }
        Copies { nodes, group }
    }

    /// Deletes a group and its nodes, in steps that can be reverted.
    fn delete_copies(&mut self, tables: &Replication, copies: Copies) {
        let nodes = copies.nodes.iter().map(|(id, _)| *id).collect();
        let undo = tables.group(Type::Insert, copies.group, Some(tables.group_data(nodes)));
        self.step(tables.group(Type::Delete, copies.group, None), Some(undo));
        for (id, data) in copies.nodes {
            self.step(tables.node(Type::Delete, id, None), Some(tables.node(Type::Insert, id, Some(data))));
        }
    }

    /// Deletes a group and its nodes after the steps of the batch have succeeded.
    fn delete_copies_later(&mut self, tables: &Replication, copies: Copies) {
        self.later(tables.group(Type::Delete, copies.group, None));
        for (id, _) in copies.nodes {
            self.later(tables.node(Type::Delete, id, None));
        }
    }
}

/// Decodes replicas, and refuses those whose copies the traffic manager cannot make. The driver itself accepts ports
/// that the device lacks, without making copies for them.
fn replicas(replicas: &[p4::Replica]) -> Outcome<Vec<Replica>> {
    let alternatives = decode_replicas(replicas)?;
    if alternatives.iter().any(|replica_and_backups| replica_and_backups.len() > 1) {
        return Err(Fault::unimplemented(
            "Tofino's backup ports are those of a port ($pre.port), not of a replica; leave backup_replicas out",
        ));
    }
    let replicas: Vec<_> = alternatives.into_iter().flatten().collect();
    match replicas.iter().find(|replica| replica.port > LAST_PORT) {
        None => Ok(replicas),
        Some(Replica { port, .. }) => {
            Err(Fault::invalid(format!("the device has no port {port}; give one from 0 to {LAST_PORT}")))
        }
    }
}
