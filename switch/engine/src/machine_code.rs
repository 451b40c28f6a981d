//! A program's machine code: its functions, and the memory that they are in.
//!
//! Only data: [`crate::native`] makes it and calls it.

use cranelift_jit::JITModule;

use crate::layout::Slots;

/// A function that takes the address of a [`crate::native`] frame, and returns how its run ended.
pub type Entry = unsafe extern "C" fn(*mut ()) -> i64;
/// A function that gives slots their start values.
pub type Fresh = unsafe extern "C" fn(*mut Slots);

/// The functions.
pub struct MachineCode {
    /// By number of the part.
    pub entries: [Entry; 5],
    /// A packet's whole way.
    pub whole: Entry,
    /// Parts that do something, by number.
    pub has: [bool; 5],
    /// The program reads how many packets wait at a port.
    pub reads_backlog: bool,
    /// `None`: all start values are to be copied.
    pub fresh: Option<Fresh>,
    /// Owns the code.
    pub module: Option<JITModule>,
}

// SAFETY: the module is not touched any more until it is dropped; its code is read-only and holds no state.
unsafe impl Send for MachineCode {}
// SAFETY: as above.
unsafe impl Sync for MachineCode {}

impl Drop for MachineCode {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the entries go with it, and nothing runs them: that needs a reference to this
            unsafe { module.free_memory() };
        }
    }
}
