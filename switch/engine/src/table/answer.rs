//! The result of a lookup in the form that machine code uses.

use crate::profile::{Bound, Call};

/// The value of [`Answer::action`]'s low half that stands for no action.
pub const NONE: u32 = u32::MAX;

/// The action of a lookup, and the address of its parameters.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The action in the low half ([`NONE`] for none), and in bit 32 whether the lookup hit.
    pub action: u64,
    /// The address of the parameters' words, which are valid until the entry's action changes.
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
