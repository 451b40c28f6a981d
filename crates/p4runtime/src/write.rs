//! The updates of Write requests, applied one by one or as a batch of which all updates or none take effect.

use crate::entity::{
    Operation, Target, counter, digest, direct, meter, profile, register, replication, table, value_set,
};
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use crate::translation::Checkpoint;
use crate::undo::{self, Saved, Undo};
use p4::entity::Entity;
use p4::update::Type;

/// Limit on the encoded length of one entity, in bytes. A read returns the entity in one message, after up to
/// [`crate::proto::LARGE`] bytes of other entities. The sum must be below the 4 MB that clients accept.
const LARGEST: usize = 2 << 20;

/// Returns the operation and the entity of an update.
fn operation_and_entity(update: &p4::Update) -> Outcome<(Operation, &Entity)> {
    let operation = match update.r#type() {
        Type::Insert => Operation::Insert,
        Type::Modify => Operation::Modify,
        Type::Delete => Operation::Delete,
        Type::Unspecified => return Err(Fault::invalid("the update has no type; give INSERT, MODIFY or DELETE")),
    };
    let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
    let entity = entity.ok_or_else(|| Fault::invalid("the update has no entity; give one"))?;
    let bytes = entity.encoded_len();
    if bytes > LARGEST && operation != Operation::Delete {
        return Err(Fault::exhausted(format!(
            "the entity has {bytes} bytes; give at most {LARGEST}, so that it can be read back in one message"
        )));
    }
    Ok((operation, entity))
}

/// Applies one update. A refused update changes nothing: the names of translated values that it introduced are removed.
pub fn apply(target: &mut Target<'_>, update: &p4::Update) -> Outcome {
    let (operation, entity) = operation_and_entity(update)?;
    let before = target.binding.types.checkpoint();
    dispatch(target, operation, entity).inspect_err(|_| target.binding.types.remove_since(&before))
}

fn dispatch(target: &mut Target<'_>, operation: Operation, entity: &Entity) -> Outcome {
    match entity {
        Entity::TableEntry(entry) => table::write(target, operation, entry),
        Entity::ActionProfileMember(member) => profile::write_member(target, operation, member),
        Entity::ActionProfileGroup(group) => profile::write_group(target, operation, group),
        Entity::MeterEntry(entry) => meter::write(target, operation, entry),
        Entity::DirectMeterEntry(entry) => direct::write_meter(target, operation, entry),
        Entity::CounterEntry(entry) => counter::write(target, operation, entry),
        Entity::DirectCounterEntry(entry) => direct::write_counter(target, operation, entry),
        Entity::PacketReplicationEngineEntry(entry) => replication::write(target, operation, entry),
        Entity::ValueSetEntry(entry) => value_set::write(target, operation, entry),
        Entity::RegisterEntry(entry) => register::write(target, operation, entry),
        Entity::DigestEntry(entry) => digest::write(target, operation, entry),
        Entity::ExternEntry(_) => {
            Err(Fault::unimplemented("v1model has no externs with entries of their own; leave them out"))
        }
    }
}

/// Applies updates one by one, and continues after a refused update.
pub fn apply_each(target: &mut Target<'_>, updates: &[p4::Update]) -> Vec<Outcome> {
    updates.iter().map(|update| apply(target, update)).collect()
}

/// A batch of which all updates are applied, or none if one is refused.
pub struct AllOrNone<'u> {
    updates: &'u [p4::Update],
    /// The undos of the updates applied so far.
    undos: Vec<Undo>,
    saved: Saved,
    /// The names of translated values before the first update, to which a reverted batch returns.
    start: Option<Checkpoint>,
    /// The index of the refused update, and the reason for the refusal.
    refused: Option<(usize, Fault)>,
}

impl<'u> AllOrNone<'u> {
    /// Returns a batch of which no update is applied yet.
    pub fn new(updates: &'u [p4::Update]) -> Self {
        let undos = Vec::with_capacity(updates.len());
        Self { updates, undos, saved: Saved::default(), start: None, refused: None }
    }

    /// Makes at most `count` steps. A step applies one update or, after a refusal, reverts one update. Returns whether
    /// the batch is finished.
    pub fn step(&mut self, target: &mut Target<'_>, count: usize) -> bool {
        let types = &target.binding.types;
        let start = self.start.get_or_insert_with(|| types.checkpoint());
        for _ in 0..count {
            if self.refused.is_some() {
                let Some(undo_update) = self.undos.pop() else {
                    types.remove_since(start);
                    return true;
                };
                if let Err(fault) = undo_update(target) {
                    tracing::error!(message = fault.message, "an update of a failed batch could not be undone");
                }
                continue;
            }
            let index = self.undos.len();
            let Some(update) = self.updates.get(index) else { return true };
            let saved = &mut self.saved;
            let planned = operation_and_entity(update)
                .and_then(|(operation, entity)| undo::plan(target, operation, entity, saved));
            match planned.and_then(|undo_update| apply(target, update).map(|()| undo_update)) {
                Ok(undo_update) => self.undos.push(undo_update),
                Err(fault) => self.refused = Some((index, fault)),
            }
        }
        false
    }

    /// Returns the outcome of each update of a finished batch.
    pub fn outcomes(self) -> Vec<Outcome> {
        let Some((refused, fault)) = self.refused else { return vec![Ok(()); self.updates.len()] };
        let reason = format!("because update {} of the batch was refused", refused + 1);
        let aborted = |what| Err(Fault::aborted(format!("{what}, {reason}; correct that update")));
        let mut outcomes: Vec<_> = (0..refused).map(|_| aborted("undone")).collect();
        outcomes.push(Err(fault));
        outcomes.extend((refused + 1..self.updates.len()).map(|_| aborted("not attempted")));
        outcomes
    }
}
