//! How a read looks at the state of a switch at work, with packets in between.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::binding::Binding;
use crate::device::Device;
use crate::entity::{Look, Source};
use crate::fault::{Fault, Outcome};
use crate::pipeline::Pipeline;

/// Looks at the program that control requests are about, while the gate is closed to other requests.
pub struct Looks<'d> {
    device: &'d Device,
    pipeline: &'d Arc<Pipeline>,
    binding: &'d Binding,
}

impl<'d> Looks<'d> {
    /// Looks at this program of the device.
    pub fn new(device: &'d Device, pipeline: &'d Arc<Pipeline>, binding: &'d Binding) -> Self {
        Self { device, pipeline, binding }
    }
}

impl Look for Looks<'_> {
    fn binding(&self) -> &Binding {
        self.binding
    }

    fn look<T>(&self, read: impl FnOnce(&Source<'_>) -> T) -> Outcome<T> {
        let mut programs = self.device.programs.lock();
        let running = programs.addressed().filter(|running| Arc::ptr_eq(&running.pipeline, self.pipeline));
        let running = running.ok_or_else(|| Fault::aborted("the program was replaced meanwhile; read again"))?;
        let found = read(&Source {
            engine: &running.engine,
            binding: self.binding,
            replication: &running.replication,
            now: self.device.now(),
        });
        // A look that follows at once would otherwise keep packets out.
        MutexGuard::unlock_fair(programs);
        Ok(found)
    }
}
