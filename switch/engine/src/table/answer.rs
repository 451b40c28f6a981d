//! The outcome of a lookup, as machine code takes it.

use crate::profile::{Bound, Call};

/// No action, in [`Answer::action`].
pub const NONE: u32 = u32::MAX;

/// What the action of a lookup is, and where its parameters are.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    /// The action in the low half ([`NONE`]: none), hit or miss in bit 32.
    pub action: u64,
    /// Address of the parameters' words, which live as long as the entry does what it does.
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
