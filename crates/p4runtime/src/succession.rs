//! Replaces the running program by another one and transfers the state that packets change: cells, counts, meters and
//! digests. [`crate::reconcile`] copies the entities that controllers wrote.

use std::sync::Arc;

use parking_lot::MutexGuard;
use sluice_engine::{Array, DigestId, EntryPair};

use crate::binding::Binding;
use crate::device::{Device, Programs, apply_port_states};
use crate::entity::{Source, Target, register};
use crate::fault::Outcome;
use crate::locking_reader::LockingReader;
use crate::pipeline::Running;
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;
use crate::read::{Fragment, Responses, no_pipeline};
use crate::reconcile::{cannot_keep, carry_over};
use crate::statistics::sum;
use crate::write;
use p4::entity::Entity;
use p4::update::Type;

/// Number of entries whose counts are added before the engine is unlocked. Packets run while the engine is unlocked.
const PAIRS_AT_ONCE: usize = 1024;

/// The objects whose state must be transferred, as pairs of an object of the old program and one of the new program.
#[derive(Debug, Default)]
pub struct CarriedState {
    arrays: Vec<Array>,
    /// P4Info ids of registers whose cells have another type in the new program.
    retyped: Vec<u32>,
    digests: Vec<(DigestId, DigestId)>,
    entries: Vec<EntryPair>,
    metered: Vec<EntryPair>,
}

impl CarriedState {
    /// Pairs the arrays and digests of the old program with those of the new program that have the same P4Info id.
    /// Registers whose cells have another type in the new program are listed by id instead; digests of another type are
    /// left out. If the new program lacks an array whose content is no longer the initial one, the transfer fails
    /// later.
    pub fn arrays(old: &Binding, new: &Binding) -> Self {
        let mut carried = Self::default();
        for register in old.registers.iter() {
            match new.registers.get(register.id) {
                Some(same) if same.data != register.data => carried.retyped.push(register.id),
                same => carried.arrays.push(Array::Register(register.engine, same.map(|same| same.engine))),
            }
        }
        let counters = old.counters.iter();
        carried
            .arrays
            .extend(counters.map(|old| Array::Counter(old.engine, new.counters.get(old.id).map(|new| new.engine))));
        let meters = old.meters.iter();
        carried.arrays.extend(meters.map(|old| Array::Meter(old.engine, new.meters.get(old.id).map(|new| new.engine))));
        let digests = old.digests.iter();
        carried.digests.extend(digests.filter_map(|old| {
            let new = new.digests.get(old.id).filter(|new| new.data == old.data)?;
            Some((old.engine, new.engine))
        }));
        carried
    }

    /// Adds an entry whose counts must be transferred. If `metered` is set, the entry's direct meter must be
    /// transferred too.
    pub fn entry(&mut self, pair: EntryPair, metered: bool) {
        self.entries.push(pair);
        if metered {
            self.metered.push(pair);
        }
    }

    /// Moves the part of the state that must be transferred while no packet runs.
    fn hand_over(&self, old: &mut Running, new: &mut Running, ports: &Ports, now: u64) -> Outcome {
        let (old_pipeline, pipeline) = (Arc::clone(&old.pipeline), Arc::clone(&new.pipeline));
        let old_binding = old_pipeline.binding.as_ref().ok_or_else(no_pipeline)?;
        let binding = pipeline.binding.as_ref().ok_or_else(no_pipeline)?;
        let source = Source { engine: &old.engine, binding: old_binding, replication: &old.replication, now };
        let mut target = Target { engine: &mut new.engine, binding, replication: &mut new.replication, ports, now };
        for id in &self.retyped {
            retype(&source, &mut target, *id)?;
        }
        Ok(new.engine.succeed(&mut old.engine, &self.arrays, &self.metered)?)
    }
}

/// Writes the nonzero cells of a register array into the new program, in which the cells of the array have another
/// type. Calls the functions that process a client's write.
fn retype(source: &Source<'_>, target: &mut Target<'_>, id: u32) -> Outcome {
    let all = p4::RegisterEntry { register_id: id, ..Default::default() };
    let fragments = register::read(source, &all)?.into_iter().map(Fragment::Registers).collect();
    for entity in Responses::new(fragments).flat_map(|response| response.entities) {
        if !matches!(&entity.entity, Some(Entity::RegisterEntry(cell)) if register::is_zero(cell)) {
            write::apply(target, &p4::Update { r#type: Type::Modify as i32, entity: Some(entity) })?;
        }
    }
    Ok(())
}

impl Device {
    /// Makes `next` the running program, and transfers to `next` the state of the saved program or, if there is none,
    /// of the running program. If the config of `next` differs from that program's config only in the cookie, that
    /// program runs on with the config of `next`. Packets run meanwhile, except during the final transfer between two
    /// packets. The caller has locked `Device::gate`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the name of the first state that cannot be transferred. The old program then continues
    /// to run unchanged.
    pub(crate) fn reconcile(&self, mut next: Running) -> Outcome {
        let pipeline = Arc::clone(&next.pipeline);
        let (old, ports) = {
            let mut programs = self.programs.lock();
            let ports = programs.ports.clone();
            let Some(old) = programs.addressed() else {
                drop(programs);
                self.replace(next);
                return Ok(());
            };
            let same = old.pipeline.config.p4_device_config == pipeline.config.p4_device_config
                && old.pipeline.config.p4info == pipeline.config.p4info;
            if same {
                // The two configs can differ only in the cookie, so the state remains in the same engine. The names of
                // translated values are copied to the new config, so that they keep their numbers.
                if let (Some(old), Some(binding)) = (&old.pipeline.binding, &pipeline.binding) {
                    binding.types.take_over(&old.types);
                }
                old.pipeline = pipeline;
                let saved = programs.saved.take();
                drop(programs);
                saved.into_iter().for_each(|saved| self.replace(saved));
                return Ok(());
            }
            (Arc::clone(&old.pipeline), ports)
        };
        let binding = old.binding.as_ref().ok_or_else(no_pipeline)?;
        apply_port_states(&mut next, &ports);
        if let Some(new) = &next.pipeline.binding {
            new.types.take_over(&binding.types);
        }
        let carried = carry_over(&LockingReader::new(self, &old, binding), &mut next, &ports, self.now())?;
        self.succeed(next, &carried, &ports)
    }

    /// Replaces the running program by `next`, and transfers the state in `carried`. The link states in `applied` are
    /// already applied to the groups of `next`.
    fn succeed(&self, mut next: Running, carried: &CarriedState, applied: &Ports) -> Outcome {
        let mut programs = self.programs.lock();
        let now = self.now();
        let Programs { running, saved, ports, past } = &mut *programs;
        let old = saved.as_mut().or(running.as_mut()).ok_or_else(no_pipeline)?;
        carried.hand_over(old, &mut next, ports, now).map_err(cannot_keep)?;
        if ports != applied {
            apply_port_states(&mut next, ports);
        }
        let (saved, replaced) = (saved.take(), running.replace(next));
        if let Some(replaced) = &replaced {
            *past = sum(past, &replaced.engine.drops());
        }
        // The queued digest messages belong to the running program. If there was a saved program, its state was
        // transferred instead; `carried` has no pairs for the running program's digests, so the messages are discarded.
        self.controllers.digests.lock().rename(if saved.is_some() { &[] } else { &carried.digests });
        MutexGuard::unlock_fair(programs);
        if let Some(old) = saved.as_ref().or(replaced.as_ref()) {
            for pairs in carried.entries.chunks(PAIRS_AT_ONCE) {
                let mut programs = self.programs.lock();
                if let Some(running) = &mut programs.running {
                    running.engine.add_counts(&old.engine, pairs, now);
                }
                MutexGuard::unlock_fair(programs);
            }
        }
        self.controllers.timer.notify_one();
        Ok(())
    }
}
