//! Read access to the state of a running switch. Each inspection locks the engine briefly, so that packets run between
//! two inspections.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::binding::Binding;
use crate::device::Device;
use crate::entity::{Source, StateReader};
use crate::fault::{Fault, Outcome};
use crate::pipeline::Pipeline;

/// Reads the state of the saved program, or if no program is saved, of the running one, under the device's lock. The
/// caller has locked `Device::gate`, so no other request changes the state.
pub struct LockingReader<'d> {
    device: &'d Device,
    pipeline: &'d Arc<Pipeline>,
    binding: &'d Binding,
}

impl<'d> LockingReader<'d> {
    /// Returns a reader of the state of `pipeline`, which is the saved program of `device`, or if there is none, the
    /// running program. `binding` is that of `pipeline`.
    pub fn new(device: &'d Device, pipeline: &'d Arc<Pipeline>, binding: &'d Binding) -> Self {
        Self { device, pipeline, binding }
    }
}

impl StateReader for LockingReader<'_> {
    fn binding(&self) -> &Binding {
        self.binding
    }

    fn inspect<T>(&self, read: impl FnOnce(&Source<'_>) -> T) -> Outcome<T> {
        let mut programs = self.device.programs.lock();
        let running = programs.addressed().filter(|running| Arc::ptr_eq(&running.pipeline, self.pipeline));
        let running = running.ok_or_else(|| Fault::aborted("the program was replaced meanwhile; read again"))?;
        let result = read(&Source {
            engine: &running.engine,
            binding: self.binding,
            replication: &running.replication,
            now: self.device.now(),
        });
        // A fair unlock passes the lock to the data plane if the data plane waits for it. Otherwise a reader that locks
        // again at once could starve packets.
        MutexGuard::unlock_fair(programs);
        Ok(result)
    }
}
