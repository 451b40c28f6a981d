//! A batch of updates as one request to the driver: what it is to do, how each step is taken back, and what the shadow keeps.

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

/// One update of the driver.
#[derive(Debug)]
pub struct Step {
    /// Which update of the batch it belongs to.
    pub owner: usize,
    /// What is done.
    pub update: Update,
    /// What takes it back, if it can be.
    pub way_back: Option<Update>,
}

/// A batch that is being planned. The shadow is changed as if every step succeeds; [`Batch::settle`] mends it by what does.
#[derive(Debug, Default)]
pub struct Batch {
    /// What the driver is to do, in order.
    pub steps: Vec<Step>,
    /// What is done when the steps of its owner have succeeded: what no entry refers to any more is deleted.
    pub later: Vec<(usize, Update)>,
    /// What became of each update so far.
    pub outcomes: Vec<Outcome>,
    /// What the shadow keeps; after [`Batch::settle`] that of updates which were made.
    changes: Vec<(usize, Change)>,
}

/// What an update is planned with.
pub struct Planner<'a> {
    loaded: &'a Loaded,
    shadow: &'a mut Shadow,
    batch: &'a mut Batch,
    owner: usize,
}

impl Batch {
    /// Plans updates in order. With `all_or_none` the first one that is refused ends the batch, and nothing is to be done.
    pub fn plan(loaded: &Loaded, shadow: &mut Shadow, updates: &[p4::Update], all_or_none: bool) -> Self {
        let mut batch = Self::default();
        for (owner, update) in updates.iter().enumerate() {
            let before = (batch.steps.len(), batch.later.len(), batch.changes.len());
            let names = loaded.binding.types.now();
            let mut outcome = Planner { loaded, shadow, batch: &mut batch, owner }.update(update);
            let lasting = batch.steps[before.0..].iter().any(|step| step.way_back.is_none());
            if all_or_none && updates.len() > 1 && lasting {
                outcome = Err(Fault::unimplemented(
                    "cells of registers and counters cannot be taken back; write them in a request of their own",
                ));
            }
            let refused = outcome.is_err();
            batch.outcomes.push(outcome);
            if refused {
                loaded.binding.types.forget_since(&names);
                batch.steps.truncate(before.0);
                batch.later.truncate(before.1);
                batch.changes.drain(before.2..).rev().for_each(|(_, change)| shadow.take_back(&change));
                if all_or_none {
                    batch.changes.drain(..).rev().for_each(|(_, change)| shadow.take_back(&change));
                    batch.steps.clear();
                    batch.later.clear();
                    batch.abort(updates.len());
                    break;
                }
            }
        }
        batch
    }

    /// Says of all updates but the refused one that they were not made.
    fn abort(&mut self, count: usize) {
        let refused = self.outcomes.iter().position(Outcome::is_err).unwrap_or(0);
        let reason = format!("because update {} of the batch was refused", refused + 1);
        let aborted = |what| Err(Fault::aborted(format!("{what}, {reason}; mend that one")));
        for outcome in &mut self.outcomes[..refused] {
            *outcome = aborted("taken back");
        }
        self.outcomes.truncate(refused + 1);
        self.outcomes.resize_with(count, || aborted("not attempted"));
    }

    /// Follows what the driver made of the steps: mends the shadow, and returns what is to be done now. With `all_or_none` one
    /// failed step takes every update back.
    pub fn settle(&mut self, shadow: &mut Shadow, results: &[Outcome], all_or_none: bool) -> Vec<Update> {
        for (step, result) in self.steps.iter().zip(results) {
            if let (Err(fault), Ok(())) = (result, &self.outcomes[step.owner]) {
                self.outcomes[step.owner] = Err(fault.clone());
            }
        }
        let any_failed = results.iter().any(Outcome::is_err);
        let fails = |owner: usize| self.outcomes[owner].is_err() || (all_or_none && any_failed);
        let made = self.steps.iter().zip(results).rev().filter(|(step, result)| result.is_ok() && fails(step.owner));
        let mut follow_up: Vec<_> = made.filter_map(|(step, _)| step.way_back.clone()).collect();
        if any_failed {
            self.changes.iter().rev().for_each(|(_, change)| shadow.take_back(change));
            self.changes.retain(|(owner, _)| !fails(*owner));
            self.changes.iter().for_each(|(_, change)| shadow.make_again(change));
        }
        follow_up.extend(self.later.iter().filter(|(owner, _)| !fails(*owner)).map(|(_, update)| update.clone()));
        if all_or_none && any_failed {
            self.abort(self.outcomes.len());
        }
        follow_up
    }

    /// What takes the steps back, whatever of them the driver has made.
    pub fn way_back(&self) -> Vec<Update> {
        self.steps.iter().rev().filter_map(|step| step.way_back.clone()).collect()
    }

    /// What the shadow keeps of the batch.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().map(|(_, change)| change)
    }

    /// Takes the whole plan back: the driver did not answer. The result takes back whatever of it the driver has made, or makes yet.
    pub fn forget(&mut self, shadow: &mut Shadow) -> Vec<Update> {
        self.changes.drain(..).rev().for_each(|(_, change)| shadow.take_back(&change));
        self.way_back()
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

    /// Adds a step.
    fn step(&mut self, update: Update, way_back: Option<Update>) {
        self.batch.steps.push(Step { owner: self.owner, update, way_back });
    }

    /// Adds what is done after the steps.
    fn later(&mut self, update: Update) {
        self.batch.later.push((self.owner, update));
    }

    /// Changes the shadow.
    fn put(&mut self, place: Place, value: Option<Value>) {
        let change = self.shadow.put(place, value);
        self.batch.changes.push((self.owner, change));
    }

    fn profile(&self, id: ProfileId) -> &crate::program::Profile {
        &self.loaded.program.profiles[id.index()]
    }

    /// Which digests are reported is the gateway's to know: the driver reports all.
    fn digest(&mut self, operation: Operation, entry: &p4::DigestEntry) -> Outcome {
        let id = entry.digest_id;
        let digest = self.loaded.binding.digests.get(id).ok_or_else(|| unknown("digest", id))?;
        let place = Place::Digest(digest.engine);
        let text = format!("digest {}", digest.name);
        let found = self.shadow.get(&place).is_some();
        operation.check_presence(found).map_err(|fault| fault.within(&format!("configuration of {text}")))?;
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
