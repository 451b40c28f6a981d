//! The updates of a Write request, one by one.

use crate::entity::{
    Operation, Target, counter, digest, direct, meter, profile, register, replication, table, value_set,
};
use crate::fault::{Fault, Outcome};
use crate::proto::p4::v1 as p4;
use crate::translation::Moment;
use crate::undo::{self, Saved, Undo};
use p4::entity::Entity;
use p4::update::Type;

/// Bytes that an entity may have. A read does not split it: it has to fit one response, beside [`crate::proto::LARGE`] bytes of
/// others and below the 4 MB that clients take.
const LARGEST: usize = 2 << 20;

/// What an update is to do, and with what.
fn parts(update: &p4::Update) -> Outcome<(Operation, &Entity)> {
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

/// Makes one update. One that is refused has changed nothing, and the names that it brought are forgotten.
pub fn apply(target: &mut Target<'_>, update: &p4::Update) -> Outcome {
    let (operation, entity) = parts(update)?;
    let before = target.binding.types.now();
    make(target, operation, entity).inspect_err(|_| target.binding.types.forget_since(&before))
}

fn make(target: &mut Target<'_>, operation: Operation, entity: &Entity) -> Outcome {
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

/// Makes updates one by one, whatever becomes of the others.
pub fn apply_each(target: &mut Target<'_>, updates: &[p4::Update]) -> Vec<Outcome> {
    updates.iter().map(|update| apply(target, update)).collect()
}

/// A batch of which all updates are made, or none if one is refused.
pub struct AllOrNone<'u> {
    updates: &'u [p4::Update],
    /// Of the updates that are made, and not taken back.
    ways_back: Vec<Undo>,
    saved: Saved,
    /// When the first of them was about to be made.
    start: Option<Moment>,
    /// Which update was refused, and why.
    refused: Option<(usize, Fault)>,
}

impl<'u> AllOrNone<'u> {
    /// Nothing of it is made yet.
    pub fn new(updates: &'u [p4::Update]) -> Self {
        let ways_back = Vec::with_capacity(updates.len());
        Self { updates, ways_back, saved: Saved::default(), start: None, refused: None }
    }

    /// Takes so many steps at most: makes an update or, when one has been refused, takes one back. True at the end.
    pub fn step(&mut self, target: &mut Target<'_>, count: usize) -> bool {
        let types = &target.binding.types;
        let start = self.start.get_or_insert_with(|| types.now());
        for _ in 0..count {
            if self.refused.is_some() {
                let Some(way_back) = self.ways_back.pop() else {
                    types.forget_since(start);
                    return true;
                };
                if let Err(fault) = way_back(target) {
                    tracing::error!(message = fault.message, "an update of a failed batch could not be taken back");
                }
                continue;
            }
            let place = self.ways_back.len();
            let Some(update) = self.updates.get(place) else { return true };
            let saved = &mut self.saved;
            let planned = parts(update).and_then(|(operation, entity)| undo::plan(target, operation, entity, saved));
            match planned.and_then(|way_back| apply(target, update).map(|()| way_back)) {
                Ok(way_back) => self.ways_back.push(way_back),
                Err(fault) => self.refused = Some((place, fault)),
            }
        }
        false
    }

    /// What became of each update, at the end.
    pub fn outcomes(self) -> Vec<Outcome> {
        let Some((refused, fault)) = self.refused else { return vec![Ok(()); self.updates.len()] };
        let reason = format!("because update {} of the batch was refused", refused + 1);
        let aborted = |what| Err(Fault::aborted(format!("{what}, {reason}; mend that one")));
        let mut outcomes: Vec<_> = (0..refused).map(|_| aborted("taken back")).collect();
        outcomes.push(Err(fault));
        outcomes.extend((refused + 1..self.updates.len()).map(|_| aborted("not attempted")));
        outcomes
    }
}
