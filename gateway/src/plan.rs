//! Plans a batch of updates as one request to the driver. The plan consists of steps (updates for the driver), the
//! update that reverts each step, and the changes of the shadow (the gateway's copy of what clients wrote).

mod cells;
pub mod direct;
mod profiles;
mod replication;
mod tables;
mod value_sets;

use sluice_engine::{DigestConfig, ProfileId};
use sluice_p4runtime::entity::{Operation, amount, unknown};
use sluice_p4runtime::fault::{Fault, Outcome};
use sluice_p4runtime::proto::p4::v1 as p4;

use crate::load::Loaded;
use crate::proto::Update;
use crate::shadow::{Change, Place, Shadow, Value};
use p4::entity::Entity;

/// One update for the driver.
#[derive(Debug)]
pub struct Step {
    /// Index, in the batch, of the client's update for which the gateway makes this step.
    pub owner: usize,
    /// The update for the driver.
    pub update: Update,
    /// The update that reverts this step; `None` if the step cannot be reverted.
    pub undo: Option<Update>,
}

/// A planned batch. Planning changes the shadow (the gateway's copy of what clients wrote) as if the driver accepted
/// every step. [`Batch::settle`] corrects the shadow by the driver's results.
#[derive(Debug, Default)]
pub struct Batch {
    /// The updates for the driver, in order.
    pub steps: Vec<Step>,
    /// Updates that delete objects to which no entry refers any more, each with the index of a client's update. The
    /// gateway sends them when the steps of this update have succeeded.
    pub later: Vec<(usize, Update)>,
    /// The outcome of each client's update so far.
    pub outcomes: Vec<Outcome>,
    /// The changes of the shadow, each with the index of a client's update. After [`Batch::settle`], the list contains
    /// only the changes by successful updates.
    changes: Vec<(usize, Change)>,
}

/// The state that is needed to plan one update.
pub struct Planner<'a> {
    loaded: &'a Loaded,
    shadow: &'a mut Shadow,
    batch: &'a mut Batch,
    owner: usize,
}

impl Batch {
    /// Plans updates in order. A refused update adds no steps. With `all_or_none`, the first refused update discards
    /// the complete batch, and an update that cannot be reverted is refused if the batch contains others.
    pub fn plan(loaded: &Loaded, shadow: &mut Shadow, updates: &[p4::Update], all_or_none: bool) -> Self {
        let mut batch = Self::default();
        for (owner, update) in updates.iter().enumerate() {
            let lengths = (batch.steps.len(), batch.later.len(), batch.changes.len());
            let names = loaded.binding.types.checkpoint();
            let mut outcome = Planner { loaded, shadow, batch: &mut batch, owner }.update(update);
            let cannot_undo = batch.steps[lengths.0..].iter().any(|step| step.undo.is_none());
            if all_or_none && updates.len() > 1 && cannot_undo {
                outcome = Err(Fault::unimplemented(
                    "writes to cells of registers and counters cannot be undone; send them in a separate request",
                ));
            }
            let refused = outcome.is_err();
            batch.outcomes.push(outcome);
            if refused {
                loaded.binding.types.remove_since(&names);
                batch.steps.truncate(lengths.0);
                batch.later.truncate(lengths.1);
                batch.changes.drain(lengths.2..).rev().for_each(|(_, change)| shadow.undo(&change));
                if all_or_none {
                    batch.changes.drain(..).rev().for_each(|(_, change)| shadow.undo(&change));
                    batch.steps.clear();
                    batch.later.clear();
                    batch.abort(updates.len());
                    break;
                }
            }
        }
        batch
    }

    /// Sets the outcomes of the batch's `count` updates, except the refused one, to `ABORTED`.
    fn abort(&mut self, count: usize) {
        let refused = self.outcomes.iter().position(Outcome::is_err).unwrap_or(0);
        let reason = format!("because update {} of the batch was refused", refused + 1);
        let aborted = |what| Err(Fault::aborted(format!("{what}, {reason}; correct that update")));
        for outcome in &mut self.outcomes[..refused] {
            *outcome = aborted("undone");
        }
        self.outcomes.truncate(refused + 1);
        self.outcomes.resize_with(count, || aborted("not attempted"));
    }

    /// Records the driver's results. Corrects the outcomes and the shadow, and returns the updates that the gateway
    /// must send next. With `all_or_none`, one failed step causes every update to be reverted.
    pub fn settle(&mut self, shadow: &mut Shadow, results: &[Outcome], all_or_none: bool) -> Vec<Update> {
        for (step, result) in self.steps.iter().zip(results) {
            if let (Err(fault), Ok(())) = (result, &self.outcomes[step.owner]) {
                self.outcomes[step.owner] = Err(fault.clone());
            }
        }
        let any_failed = results.iter().any(Outcome::is_err);
        let fails = |owner: usize| self.outcomes[owner].is_err() || (all_or_none && any_failed);
        let made = self.steps.iter().zip(results).rev().filter(|(step, result)| result.is_ok() && fails(step.owner));
        let mut follow_up: Vec<_> = made.filter_map(|(step, _)| step.undo.clone()).collect();
        if any_failed {
            self.changes.iter().rev().for_each(|(_, change)| shadow.undo(change));
            self.changes.retain(|(owner, _)| !fails(*owner));
            self.changes.iter().for_each(|(_, change)| shadow.redo(change));
        }
        follow_up.extend(self.later.iter().filter(|(owner, _)| !fails(*owner)).map(|(_, update)| update.clone()));
        if all_or_none && any_failed {
            self.abort(self.outcomes.len());
        }
        follow_up
    }

    /// Returns the updates that revert the steps, in reverse order. Steps that cannot be reverted are omitted.
    pub fn undo(&self) -> Vec<Update> {
        self.steps.iter().rev().filter_map(|step| step.undo.clone()).collect()
    }

    /// Returns the changes of the shadow by this batch.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().map(|(_, change)| change)
    }

    /// Reverts all changes of the shadow, because the batch was not sent or the driver did not reply. Returns the
    /// updates that revert the steps, because the driver may have made them or may still make them.
    pub fn roll_back(&mut self, shadow: &mut Shadow) -> Vec<Update> {
        self.changes.drain(..).rev().for_each(|(_, change)| shadow.undo(&change));
        self.undo()
    }
}

impl Planner<'_> {
    fn update(&mut self, update: &p4::Update) -> Outcome {
        use p4::update::Type;
        let operation = match update.r#type() {
            Type::Insert => Operation::Insert,
            Type::Modify => Operation::Modify,
            Type::Delete => Operation::Delete,
            Type::Unspecified => return Err(Fault::invalid("the update has no type; give INSERT, MODIFY or DELETE")),
        };
        let entity = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
        match entity.ok_or_else(|| Fault::invalid("the update has no entity; give one"))? {
            Entity::TableEntry(entry) => self.table_entry(operation, entry),
            Entity::ActionProfileMember(member) => self.member(operation, member),
            Entity::ActionProfileGroup(group) => self.group(operation, group),
            Entity::RegisterEntry(entry) => self.register(operation, entry),
            Entity::CounterEntry(entry) => self.counter(operation, entry),
            Entity::MeterEntry(entry) => self.meter(operation, entry),
            Entity::DigestEntry(entry) => self.digest(operation, entry),
            Entity::DirectCounterEntry(entry) => self.direct_counter(operation, entry),
            Entity::DirectMeterEntry(entry) => self.direct_meter(operation, entry),
            Entity::ValueSetEntry(entry) => self.value_set(operation, entry),
            Entity::PacketReplicationEngineEntry(entry) => self.replication(operation, entry),
            Entity::ExternEntry(_) => Err(Fault::unimplemented(
                "the gateway writes no externs of a program's own: P4Runtime has no messages for them; leave them out",
            )),
        }
    }

    /// Adds a step for the current update.
    fn step(&mut self, update: Update, undo: Option<Update>) {
        self.batch.steps.push(Step { owner: self.owner, update, undo });
    }

    /// Adds an update that the gateway sends after the steps have succeeded.
    fn later(&mut self, update: Update) {
        self.batch.later.push((self.owner, update));
    }

    /// Changes a value in the shadow, and records the change for the current update.
    fn put(&mut self, place: Place, value: Option<Value>) {
        let change = self.shadow.put(place, value);
        self.batch.changes.push((self.owner, change));
    }

    fn profile(&self, id: ProfileId) -> &crate::program::Profile {
        &self.loaded.program.profiles[id.index()]
    }

    /// Enables or disables the reports of a digest. The driver reports all digests, and the gateway discards the
    /// messages of disabled digests.
    fn digest(&mut self, operation: Operation, entry: &p4::DigestEntry) -> Outcome {
        let id = entry.digest_id;
        let digest = self.loaded.binding.digests.get(id).ok_or_else(|| unknown("digest", id))?;
        let place = Place::Digest(digest.engine);
        let text = format!("digest {}", digest.name);
        let enabled = self.shadow.get(&place).is_some();
        operation.check_presence(enabled).map_err(|fault| fault.within(&format!("configuration of {text}")))?;
        let config = entry.config.unwrap_or_default();
        let config = match operation {
            Operation::Delete => None,
            Operation::Insert | Operation::Modify => Some(DigestConfig {
                max_timeout_ns: amount(config.max_timeout_ns, "max_timeout_ns").map_err(|fault| fault.within(&text))?,
                max_list_size: amount(config.max_list_size, "max_list_size").map_err(|fault| fault.within(&text))?,
                ack_timeout_ns: amount(config.ack_timeout_ns, "ack_timeout_ns").map_err(|fault| fault.within(&text))?,
            }),
        };
        self.put(place, config.map(Value::Digest));
        Ok(())
    }
}
