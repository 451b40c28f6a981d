//! Allocates slots for fields, temporaries, parameters and constants, and refuses a program that needs too many.

use super::json::{J, Result};
use crate::layout::{Layout, NOWHERE, Slot};

/// The maximum number of slots for all headers, temporaries, parameters and constants of a program.
pub const MAX_SLOTS: usize = NOWHERE as usize;

/// Reserves `count` consecutive slots and returns the first. `at` is the place in the JSON that an error reports.
pub fn take(layout: &mut Layout, count: usize, at: &J) -> Result<Slot> {
    let first = layout.used;
    if first + count > MAX_SLOTS {
        return Err(at.refused(
            format!("the program needs more than {MAX_SLOTS} slots of 64 bits for its fields"),
            "give it fewer or narrower headers, metadata and parameters",
        ));
    }
    layout.used += count;
    Ok(first as Slot)
}
