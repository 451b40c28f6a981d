//! Reads and writes of multicast groups and clone sessions.
//!
//! A replica may have backups, which are further ports. Packets leave by the first port that is up, in the order of the
//! replica and its backups. If all ports are down, packets are sent to the port of the replica itself and lost there.
//! The engine stores only the selected port, so the server repeats the selection whenever a port goes down or up.

use std::collections::HashSet;

use sluice_engine::{CloneSession, ControlError, Engine, Replica};

use super::{Operation, ReplicationEntries, Source, Target, amount};
use crate::fault::{Fault, Outcome};
use crate::ports::{self, Ports};
use crate::proto::p4::v1 as p4;
use p4::packet_replication_engine_entry::Type;
use p4::replica::PortKind;

/// Inserts, replaces or deletes a multicast group or clone session.
pub fn write(target: &mut Target<'_>, operation: Operation, entry: &p4::PacketReplicationEngineEntry) -> Outcome {
    match &entry.r#type {
        Some(Type::MulticastGroupEntry(group)) => write_group(target, operation, group),
        Some(Type::CloneSessionEntry(session)) => write_session(target, operation, session),
        None => Err(neither()),
    }
}

fn write_group(target: &mut Target<'_>, operation: Operation, group: &p4::MulticastGroupEntry) -> Outcome {
    let id = group.multicast_group_id;
    let place = format!("multicast group {id}");
    check_presence(operation, target.replication.groups.contains_key(&id), id).map_err(|fault| fault.within(&place))?;
    if operation == Operation::Delete {
        target.engine.multicast_set(id, None)?;
        target.replication.groups.remove(&id);
        return Ok(());
    }
    let replicas = decode_replicas(&group.replicas).map_err(|fault| fault.within(&place))?;
    target.engine.multicast_set(id, Some(&select_replicas(&replicas, target.ports)))?;
    target.replication.groups.insert(id, group.clone());
    Ok(())
}

fn write_session(target: &mut Target<'_>, operation: Operation, session: &p4::CloneSessionEntry) -> Outcome {
    let id = session.session_id;
    let place = format!("clone session {id}");
    let exists = target.replication.sessions.contains_key(&id);
    check_presence(operation, exists, id).map_err(|fault| fault.within(&place))?;
    if operation == Operation::Delete {
        target.engine.clone_session_set(id, None)?;
        target.replication.sessions.remove(&id);
        return Ok(());
    }
    let config = decode_session(session, target.ports).map_err(|fault| fault.within(&place))?;
    target.engine.clone_session_set(id, Some(&config))?;
    target.replication.sessions.insert(id, session.clone());
    Ok(())
}

/// Refuses the id 0. Refuses to insert an entity that exists, and to modify or delete an entity that does not exist.
///
/// # Errors
/// `INVALID_ARGUMENT` for the id 0, `ALREADY_EXISTS` for an insertion, `NOT_FOUND` for a modification or deletion.
pub fn check_presence(operation: Operation, exists: bool, id: u32) -> Outcome {
    if id == 0 {
        return Err(Fault::invalid("ids begin at 1; give 1 or more"));
    }
    operation.check_presence(exists)
}

fn decode_session(session: &p4::CloneSessionEntry, ports: &Ports) -> Outcome<CloneSession> {
    Ok(CloneSession {
        replicas: select_replicas(&decode_replicas(&session.replicas)?, ports),
        class_of_service: session.class_of_service,
        packet_length_bytes: amount(session.packet_length_bytes, "packet_length_bytes")?,
    })
}

/// A replica followed by its backups, in order of preference.
pub type Alternatives = Vec<Replica>;

/// Decodes replicas, each with its backups.
///
/// # Errors
/// `INVALID_ARGUMENT` for a replica without a port, a port that is its own backup, a repeated replica, or an instance
/// of more than 16 bits. `OUT_OF_RANGE` for a port number of more than 32 bits.
pub fn decode_replicas(replicas: &[p4::Replica]) -> Outcome<Vec<Alternatives>> {
    let mut decoded: Vec<Alternatives> = Vec::with_capacity(replicas.len());
    let mut distinct = HashSet::with_capacity(replicas.len());
    for replica in replicas {
        let port = match &replica.port_kind {
            Some(PortKind::EgressPort(port)) => *port,
            Some(PortKind::Port(port)) => ports::number(port).map_err(|fault| fault.within("replica port"))?,
            None => return Err(Fault::invalid("a replica has no port; give one")),
        };
        let mut alternatives = vec![decode_replica(port, replica.instance)?];
        for backup in &replica.backup_replicas {
            let backup_port = ports::number(&backup.port).map_err(|fault| fault.within("backup replica port"))?;
            if backup_port == port {
                return Err(Fault::invalid(format!("port {port} is its own backup; give another one")));
            }
            alternatives.push(decode_replica(backup_port, backup.instance)?);
        }
        if let Some(Replica { port, instance }) = alternatives.iter().find(|replica| !distinct.insert(**replica)) {
            return Err(Fault::invalid(format!("port {port} with instance {instance} is given twice; give it once")));
        }
        decoded.push(alternatives);
    }
    Ok(decoded)
}

fn decode_replica(port: u32, instance: u32) -> Outcome<Replica> {
    let instance = u16::try_from(instance).map_err(|_| {
        Fault::invalid(format!("the replica instance {instance} has more than 16 bits; give 0 to 65535"))
    })?;
    Ok(Replica { port, instance })
}

/// Selects from each list of alternatives the first replica whose port is up, or the first replica if no port is up.
fn select_replicas(replicas: &[Alternatives], ports: &Ports) -> Vec<Replica> {
    let select = |alternatives: &Alternatives| {
        alternatives.iter().find(|replica| ports.is_up(replica.port)).or(alternatives.first()).copied()
    };
    replicas.iter().filter_map(select).collect()
}

/// Repeats the selection between replicas and their backups after a port went down or up.
///
/// # Errors
/// Fails when the engine refuses a group or session. The engine accepted the same entry earlier, so a failure is a bug.
pub fn reselect_replicas(engine: &mut Engine, entries: &ReplicationEntries, ports: &Ports) -> Result<(), ControlError> {
    let has_backups = |replicas: &[p4::Replica]| replicas.iter().any(|replica| !replica.backup_replicas.is_empty());
    for (id, group) in entries.groups.iter().filter(|(_, group)| has_backups(&group.replicas)) {
        if let Ok(replicas) = decode_replicas(&group.replicas) {
            engine.multicast_set(*id, Some(&select_replicas(&replicas, ports)))?;
        }
    }
    for (id, session) in entries.sessions.iter().filter(|(_, session)| has_backups(&session.replicas)) {
        if let Ok(config) = decode_session(session, ports) {
            engine.clone_session_set(*id, Some(&config))?;
        }
    }
    Ok(())
}

/// Reads one multicast group, one clone session, all groups or all sessions.
pub fn read(
    source: &Source<'_>,
    entry: &p4::PacketReplicationEngineEntry,
) -> Outcome<Vec<p4::PacketReplicationEngineEntry>> {
    let ReplicationEntries { groups, sessions } = source.replication;
    select(entry, groups.values(), sessions.values())
}

/// Returns the groups or sessions that match a pattern: the entry with the pattern's id, or all entries of the
/// pattern's kind for the id 0.
///
/// # Errors
/// `INVALID_ARGUMENT` for a pattern that is neither a group nor a session.
pub fn select<'e>(
    pattern: &p4::PacketReplicationEngineEntry,
    groups: impl Iterator<Item = &'e p4::MulticastGroupEntry>,
    sessions: impl Iterator<Item = &'e p4::CloneSessionEntry>,
) -> Outcome<Vec<p4::PacketReplicationEngineEntry>> {
    let fits = |pattern: u32, id: u32| pattern == 0 || pattern == id;
    let entries: Vec<Type> = match &pattern.r#type {
        Some(Type::MulticastGroupEntry(pattern)) => groups
            .filter(|group| fits(pattern.multicast_group_id, group.multicast_group_id))
            .map(|group| Type::MulticastGroupEntry(group.clone()))
            .collect(),
        Some(Type::CloneSessionEntry(pattern)) => sessions
            .filter(|session| fits(pattern.session_id, session.session_id))
            .map(|session| Type::CloneSessionEntry(session.clone()))
            .collect(),
        None => return Err(neither()),
    };
    Ok(entries.into_iter().map(|entry| p4::PacketReplicationEngineEntry { r#type: Some(entry) }).collect())
}

/// Returns the error for an entry that is neither a multicast group nor a clone session.
pub fn neither() -> Fault {
    Fault::invalid("the replication entry is neither a multicast group nor a clone session; give one of them")
}
