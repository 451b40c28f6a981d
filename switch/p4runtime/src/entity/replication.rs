//! Multicast groups and clone sessions.

use std::collections::BTreeMap;

use sluice_engine::{CloneSession, Replica};

use super::{Operation, Source, Target};
use crate::bits;
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use p4::packet_replication_engine_entry::Type;
use p4::replica::PortKind;

/// Inserts, replaces or deletes a multicast group or clone session.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::PacketReplicationEngineEntry) -> Outcome {
    match &entry.r#type {
        Some(Type::MulticastGroupEntry(group)) => write_group(target, operation, group),
        Some(Type::CloneSessionEntry(session)) => write_session(target, operation, session),
        None => Err(Fault::invalid("the replication entry is neither a multicast group nor a clone session")),
    }
}

fn write_group(target: &mut Target<'_>, operation: Operation, group: &p4::MulticastGroupEntry) -> Outcome {
    let id = group.multicast_group_id;
    let place = format!("multicast group {id}");
    check_presence(operation, &target.replication.groups, id, &place)?;
    if operation == Operation::Delete {
        target.engine.multicast_set(id, None)?;
        target.replication.groups.remove(&id);
        return Ok(());
    }
    let replicas = decode_replicas(&group.replicas).map_err(|fault| fault.within(&place))?;
    target.engine.multicast_set(id, Some(&replicas))?;
    target.replication.groups.insert(id, group.clone());
    Ok(())
}

fn write_session(target: &mut Target<'_>, operation: Operation, session: &p4::CloneSessionEntry) -> Outcome {
    let id = session.session_id;
    let place = format!("clone session {id}");
    check_presence(operation, &target.replication.sessions, id, &place)?;
    if operation == Operation::Delete {
        target.engine.clone_session_set(id, None)?;
        target.replication.sessions.remove(&id);
        return Ok(());
    }
    let config = CloneSession {
        replicas: decode_replicas(&session.replicas).map_err(|fault| fault.within(&place))?,
        class_of_service: session.class_of_service,
        packet_length_bytes: u32::try_from(session.packet_length_bytes)
            .map_err(|_| Fault::invalid(format!("{place}: packet_length_bytes is negative")))?,
    };
    target.engine.clone_session_set(id, Some(&config))?;
    target.replication.sessions.insert(id, session.clone());
    Ok(())
}

fn check_presence<T>(operation: Operation, present: &BTreeMap<u32, T>, id: u32, place: &str) -> Outcome {
    match (operation, present.contains_key(&id)) {
        _ if id == 0 => Err(Fault::invalid(format!("{place}: ids begin at 1"))),
        (Operation::Insert, true) => Err(Fault::exists(place)),
        (Operation::Modify | Operation::Delete, false) => Err(Fault::not_found(place)),
        _ => Ok(()),
    }
}

fn decode_replicas(replicas: &[p4::Replica]) -> Outcome<Vec<Replica>> {
    let mut decoded = Vec::with_capacity(replicas.len());
    for replica in replicas {
        if !replica.backup_replicas.is_empty() {
            return Err(Fault::unimplemented("backup replicas are not supported"));
        }
        let port = match &replica.port_kind {
            Some(PortKind::EgressPort(port)) => *port,
            Some(PortKind::Port(port)) => {
                let bytes = bits::unsigned(port, 32).map_err(|fault| fault.within("replica port"))?;
                bytes.iter().fold(0, |port, byte| port << 8 | u32::from(*byte))
            }
            None => return Err(Fault::invalid("a replica has no port")),
        };
        let instance = u16::try_from(replica.instance)
            .map_err(|_| Fault::invalid(format!("the replica instance {} has more than 16 bits", replica.instance)))?;
        let replica = Replica { port, instance };
        if decoded.contains(&replica) {
            return Err(Fault::invalid(format!("port {port} with instance {instance} is there twice")));
        }
        decoded.push(replica);
    }
    Ok(decoded)
}

/// Reads one group or session, or all of one of the two kinds.
pub fn read(
    source: &Source<'_>,
    entry: &p4::PacketReplicationEngineEntry,
) -> Outcome<Vec<p4::PacketReplicationEngineEntry>> {
    fn select<T: Clone>(entries: &BTreeMap<u32, T>, id: u32) -> Vec<T> {
        entries.iter().filter(|(key, _)| id == 0 || **key == id).map(|(_, entry)| entry.clone()).collect()
    }
    let found: Vec<Type> = match &entry.r#type {
        Some(Type::MulticastGroupEntry(group)) => select(&source.replication.groups, group.multicast_group_id)
            .into_iter()
            .map(Type::MulticastGroupEntry)
            .collect(),
        Some(Type::CloneSessionEntry(session)) => {
            select(&source.replication.sessions, session.session_id).into_iter().map(Type::CloneSessionEntry).collect()
        }
        None => return Err(Fault::invalid("the replication entry is neither a multicast group nor a clone session")),
    };
    Ok(found.into_iter().map(|entry| p4::PacketReplicationEngineEntry { r#type: Some(entry) }).collect())
}
