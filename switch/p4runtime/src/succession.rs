//! What a program that takes another's place gets from it besides what controllers wrote: the state that packets change.

use std::sync::Arc;

use parking_lot::MutexGuard;
use sluice_engine::{Array, DigestId, EntryPair};

use crate::binding::Binding;
use crate::device::{Device, Programs, follow};
use crate::entity::{Source, Target, register};
use crate::fault::Outcome;
use crate::looks::Looks;
use crate::pipeline::Running;
use crate::ports::Ports;
use crate::proto::p4::v1 as p4;
use crate::read::{Part, Responses, no_pipeline};
use crate::reconcile::{cannot_keep, carry_over};
use crate::statistics::sum;
use crate::write;
use p4::entity::Entity;
use p4::update::Type;

/// Entries whose counts are added while packets wait once.
const PAIRS_AT_ONCE: usize = 1024;

/// What is kept of the state that packets change.
#[derive(Debug, Default)]
pub struct Kept {
    arrays: Vec<Array>,
    /// P4Info's ids of registers whose cells become of another type.
    retyped: Vec<u32>,
    digests: Vec<(DigestId, DigestId)>,
    entries: Vec<EntryPair>,
    metered: Vec<EntryPair>,
}

impl Kept {
    /// All arrays and digests of the old program. An array that the new one has not must be as at the start.
    pub fn arrays(old: &Binding, new: &Binding) -> Self {
        let mut kept = Self::default();
        for register in old.registers.iter() {
            match new.registers.get(register.id) {
                Some(same) if same.data != register.data => kept.retyped.push(register.id),
                same => kept.arrays.push(Array::Register(register.engine, same.map(|same| same.engine))),
            }
        }
        let counters = old.counters.iter();
        kept.arrays
            .extend(counters.map(|old| Array::Counter(old.engine, new.counters.get(old.id).map(|new| new.engine))));
        let meters = old.meters.iter();
        kept.arrays.extend(meters.map(|old| Array::Meter(old.engine, new.meters.get(old.id).map(|new| new.engine))));
        let digests = old.digests.iter();
        kept.digests.extend(digests.filter_map(|old| {
            let new = new.digests.get(old.id).filter(|new| new.data == old.data)?;
            Some((old.engine, new.engine))
        }));
        kept
    }

    /// Has an entry kept, and whether its meter is configured.
    pub fn entry(&mut self, pair: EntryPair, metered: bool) {
        self.entries.push(pair);
        if metered {
            self.metered.push(pair);
        }
    }

    /// Hands over what has to be handed over at one moment.
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

/// Writes the cells of a register to one whose cells are of another type, as a client would.
fn retype(source: &Source<'_>, target: &mut Target<'_>, id: u32) -> Outcome {
    let all = p4::RegisterEntry { register_id: id, ..Default::default() };
    let parts = register::read(source, &all)?.into_iter().map(Part::Registers).collect();
    for entity in Responses::new(parts).flat_map(|response| response.entities) {
        if !matches!(&entity.entity, Some(Entity::RegisterEntry(cell)) if register::is_zero(cell)) {
            write::apply(target, &p4::Update { r#type: Type::Modify as i32, entity: Some(entity) })?;
        }
    }
    Ok(())
}

impl Device {
    /// Puts a fresh program to work with the state of the one that control requests are about. Packets run meanwhile, and wait for one
    /// moment. To be called with the gate closed to other requests.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the first piece of state that cannot be kept; nothing has changed then.
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
                // Nothing but the cookie can differ, and the state stays where it is; its values mean what they meant.
                if let (Some(known), Some(binding)) = (&old.pipeline.binding, &pipeline.binding) {
                    binding.types.take_over(&known.types);
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
        follow(&mut next, &ports);
        if let Some(new) = &next.pipeline.binding {
            new.types.take_over(&binding.types);
        }
        let kept = carry_over(&Looks::new(self, &old, binding), &mut next, &ports, self.now())?;
        self.succeed(next, &kept, &ports)
    }

    /// Puts `next` to work, which knows of `known` ports, and hands over what is kept.
    fn succeed(&self, mut next: Running, kept: &Kept, known: &Ports) -> Outcome {
        let mut programs = self.programs.lock();
        let now = self.now();
        let Programs { running, saved, ports, past } = &mut *programs;
        let old = saved.as_mut().or(running.as_mut()).ok_or_else(no_pipeline)?;
        kept.hand_over(old, &mut next, ports, now).map_err(cannot_keep)?;
        if ports != known {
            follow(&mut next, ports);
        }
        let (saved, replaced) = (saved.take(), running.replace(next));
        if let Some(replaced) = &replaced {
            *past = sum(past, &replaced.engine.drops());
        }
        // Messages that wait are those of the program that ran.
        self.controllers.digests.lock().rename(if saved.is_some() { &[] } else { &kept.digests });
        MutexGuard::unlock_fair(programs);
        if let Some(old) = saved.as_ref().or(replaced.as_ref()) {
            for pairs in kept.entries.chunks(PAIRS_AT_ONCE) {
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
