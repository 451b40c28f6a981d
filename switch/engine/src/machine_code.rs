//! A program's compiled functions and the memory that contains them.
//!
//! This module has only the data; [`crate::native`] compiles and calls the functions.

use cranelift_jit::JITModule;

use crate::layout::Slots;

/// A compiled function. It takes the address of a [`crate::native`] frame and returns how its run ended.
pub type Entry = unsafe extern "C" fn(*mut ()) -> i64;
/// A compiled function that sets slots to their start values.
pub type Fresh = unsafe extern "C" fn(*mut Slots);

/// The compiled functions of a program.
pub struct MachineCode {
    /// The functions of the program's parts, by the part's number.
    pub entries: [Entry; 5],
    /// The function that runs a packet through all parts in one call.
    pub fast_path: Entry,
    /// Whether each part, by its number, does anything.
    pub nonempty: [bool; 5],
    /// Whether the program reads how many frames wait at a port.
    pub reads_backlog: bool,
    /// The function that sets the start values; `None` if all start values are to be copied instead.
    pub fresh: Option<Fresh>,
    /// The owner of the code's memory.
    pub module: Option<JITModule>,
}

// SAFETY: nothing accesses the module until it is dropped; its code is read-only and has no state.
unsafe impl Send for MachineCode {}
// SAFETY: see `Send`; a shared reference reads only function addresses.
unsafe impl Sync for MachineCode {}

impl Drop for MachineCode {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the functions die with this value, and a caller that runs one has a reference to it.
            unsafe { module.free_memory() };
        }
    }
}
