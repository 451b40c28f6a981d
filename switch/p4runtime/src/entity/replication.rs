//! Multicast groups and clone sessions.
//!
//! A replica with backups goes to the first of its ports that is up; with none of them up, to its own, where it is lost.
//! The engine knows that port only: it is told anew when a port goes down or comes up.

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
    target.engine.multicast_set(id, Some(&choose(&replicas, target.ports)))?;
    target.replication.groups.insert(id, group.clone());
    Ok(())
}

fn write_session(target: &mut Target<'_>, operation: Operation, session: &p4::CloneSessionEntry) -> Outcome {
    let id = session.session_id;
    let place = format!("clone session {id}");
    let is_there = target.replication.sessions.contains_key(&id);
    check_presence(operation, is_there, id).map_err(|fault| fault.within(&place))?;
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

/// Refuses the id 0, to insert what is there, and to change or delete what is not.
///
/// # Errors
/// `INVALID_ARGUMENT`, `ALREADY_EXISTS`, `NOT_FOUND`.
pub fn check_presence(operation: Operation, is_there: bool, id: u32) -> Outcome {
    if id == 0 {
        return Err(Fault::invalid("ids begin at 1; give 1 or more"));
    }
    operation.check_presence(is_there)
}

fn decode_session(session: &p4::CloneSessionEntry, ports: &Ports) -> Outcome<CloneSession> {
    Ok(CloneSession {
        replicas: choose(&decode_replicas(&session.replicas)?, ports),
        class_of_service: session.class_of_service,
        packet_length_bytes: amount(session.packet_length_bytes, "packet_length_bytes")?,
    })
}

/// A replica and its backups, the most preferred first.
pub type Choice = Vec<Replica>;

/// Replicas from the wire, each with its backups.
///
/// # Errors
/// `INVALID_ARGUMENT` for a replica without a port, one that is there twice, or an instance of more than 16 bits.
pub fn decode_replicas(replicas: &[p4::Replica]) -> Outcome<Vec<Choice>> {
    let mut decoded: Vec<Choice> = Vec::with_capacity(replicas.len());
    let mut seen = HashSet::with_capacity(replicas.len());
    for replica in replicas {
        let port = match &replica.port_kind {
            Some(PortKind::EgressPort(port)) => *port,
            Some(PortKind::Port(port)) => ports::number(port).map_err(|fault| fault.within("replica port"))?,
            None => return Err(Fault::invalid("a replica has no port; give one")),
        };
        let mut choice = vec![decode_replica(port, replica.instance)?];
        for backup in &replica.backup_replicas {
            let backup_port = ports::number(&backup.port).map_err(|fault| fault.within("backup replica port"))?;
            if backup_port == port {
                return Err(Fault::invalid(format!("port {port} is its own backup; give another one")));
            }
            choice.push(decode_replica(backup_port, backup.instance)?);
        }
        if let Some(Replica { port, instance }) = choice.iter().find(|replica| !seen.insert(**replica)) {
            return Err(Fault::invalid(format!("port {port} with instance {instance} is there twice; give it once")));
        }
        decoded.push(choice);
    }
    Ok(decoded)
}

fn decode_replica(port: u32, instance: u32) -> Outcome<Replica> {
    let instance = u16::try_from(instance).map_err(|_| {
        Fault::invalid(format!("the replica instance {instance} has more than 16 bits; give 0 to 65535"))
    })?;
    Ok(Replica { port, instance })
}

/// Of each choice, the first whose port is up, else the first.
fn choose(choices: &[Choice], ports: &Ports) -> Vec<Replica> {
    let choose = |choice: &Choice| choice.iter().find(|replica| ports.is_up(replica.port)).or(choice.first()).copied();
    choices.iter().filter_map(choose).collect()
}

/// Chooses again between replicas and their backups, because a port went down or came up.
///
/// # Errors
/// None, because everything was accepted before.
pub fn choose_again(engine: &mut Engine, entries: &ReplicationEntries, ports: &Ports) -> Result<(), ControlError> {
    let has_backups = |replicas: &[p4::Replica]| replicas.iter().any(|replica| !replica.backup_replicas.is_empty());
    for (id, group) in entries.groups.iter().filter(|(_, group)| has_backups(&group.replicas)) {
        if let Ok(choices) = decode_replicas(&group.replicas) {
            engine.multicast_set(*id, Some(&choose(&choices, ports)))?;
        }
    }
    for (id, session) in entries.sessions.iter().filter(|(_, session)| has_backups(&session.replicas)) {
        if let Ok(config) = decode_session(session, ports) {
            engine.clone_session_set(*id, Some(&config))?;
        }
    }
    Ok(())
}

/// Reads one group or session, or all of one of the two kinds.
pub fn read(
    source: &Source<'_>,
    entry: &p4::PacketReplicationEngineEntry,
) -> Outcome<Vec<p4::PacketReplicationEngineEntry>> {
    let ReplicationEntries { groups, sessions } = source.replication;
    select(entry, groups.values(), sessions.values())
}

/// Of groups and sessions, those that a pattern asks for: one of them, or all of one of the two kinds.
///
/// # Errors
/// `INVALID_ARGUMENT` for a pattern of neither kind.
pub fn select<'e>(
    pattern: &p4::PacketReplicationEngineEntry,
    groups: impl Iterator<Item = &'e p4::MulticastGroupEntry>,
    sessions: impl Iterator<Item = &'e p4::CloneSessionEntry>,
) -> Outcome<Vec<p4::PacketReplicationEngineEntry>> {
    let fits = |wanted: u32, id: u32| wanted == 0 || wanted == id;
    let found: Vec<Type> = match &pattern.r#type {
        Some(Type::MulticastGroupEntry(wanted)) => groups
            .filter(|group| fits(wanted.multicast_group_id, group.multicast_group_id))
            .map(|group| Type::MulticastGroupEntry(group.clone()))
            .collect(),
        Some(Type::CloneSessionEntry(wanted)) => sessions
            .filter(|session| fits(wanted.session_id, session.session_id))
            .map(|session| Type::CloneSessionEntry(session.clone()))
            .collect(),
        None => return Err(neither()),
    };
    Ok(found.into_iter().map(|entry| p4::PacketReplicationEngineEntry { r#type: Some(entry) }).collect())
}

/// The refusal of an entry that is neither a group nor a session.
pub fn neither() -> Fault {
    Fault::invalid("the replication entry is neither a multicast group nor a clone session; give one of them")
}
