//! The result of a table lookup in the form that machine code uses.

use crate::profile::{Bound, Call};

/// The value of the low half of [`Answer::action`] that means that no action runs.
pub const NONE: u32 = u32::MAX;

/// The result of a table lookup: the action that runs, and the address of the action's parameters.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The action in the low half ([`NONE`] if no action runs). Bit 32 is set if an entry matched.
    pub action: u64,
    /// The address of the parameters' words. It is valid until the entry's action changes.
    pub params: usize,
}

impl Answer {
    pub fn new(call: Option<&Call>, hit: bool) -> Answer {
        let hit = u64::from(hit) << 32;
        match call {
            Some(call) => Answer { action: u64::from(call.action.0) | hit, params: call.params.as_ptr() as usize },
            None => Answer { action: u64::from(NONE) | hit, params: 0 },
        }
    }

    pub fn of(bound: Option<&Bound>, hit: bool) -> Answer {
        match bound {
            Some(Bound::Call(call)) => Answer::new(Some(call), hit),
            _ => Answer::new(None, hit),
        }
    }
}
