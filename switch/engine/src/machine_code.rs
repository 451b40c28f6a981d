//! Contains a program's compiled functions and owns the memory of their machine code.
//!
//! This module contains only data. [`crate::native`] compiles and calls the functions.

use cranelift_jit::JITModule;

use crate::layout::Slots;

/// A compiled function. Its parameter is the address of a [`crate::native`] frame, and its result is the status with
/// which the run ended.
pub type Entry = unsafe extern "C" fn(*mut ()) -> i64;
/// A compiled function that sets slots to their initial values.
pub type Fresh = unsafe extern "C" fn(*mut Slots);

/// The compiled functions of a program.
pub struct MachineCode {
    /// The functions of the stages, by the stage's number.
    pub entries: [Entry; 5],
    /// The function that processes a packet in all stages with a single call.
    pub fast_path: Entry,
    /// Whether the stage with this number has any code.
    pub nonempty: [bool; 5],
    /// Whether the program reads the backlog of a port: the number of waiting frames, or their waiting time.
    pub reads_backlog: bool,
    /// The function that sets the initial values; `None` if the initial values must be copied instead.
    pub fresh: Option<Fresh>,
    /// The module that owns the memory of the machine code.
    pub module: Option<JITModule>,
}

// SAFETY: the module is not accessed until it is dropped. Its code is read-only and has no state.
unsafe impl Send for MachineCode {}
// SAFETY: the reason for `Send` is also valid for `Sync`. A shared reference reads only function addresses.
unsafe impl Sync for MachineCode {}

impl Drop for MachineCode {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the functions cannot be called after this value is dropped, because a caller needs a reference to
            // it.
            unsafe { module.free_memory() };
        }
    }
}
