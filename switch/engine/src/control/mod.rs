//! Methods of [`crate::Engine`] that read and change its state.
//!
//! Every method is atomic with respect to packets, because the caller guards the engine by one mutex. The caller locks
//! the mutex once for each batch of packets and once for each request. A method that returns an error has changed
//! nothing.
//!
//! Byte strings are big-endian. A written byte string may have any length if its value fits into the field's width. A
//! byte string that is read has exactly `ceil(width / 8)` bytes. Priorities are those of P4Runtime: the largest takes
//! precedence.

mod arrays;
mod counter;
mod defaults;
mod digest;
mod entry;
mod group;
mod limits;
mod others;
mod ports;
mod profiles;
mod replica;
mod succession;
mod tables;
mod undo;

use std::fmt::Display;

use num_bigint::BigUint;

use crate::bits::{limbs_to_bytes, to_limbs};
use crate::error::ControlError;
use crate::layout::limbs;
use crate::profile::Call;
use crate::program::Program;

pub use counter::{CounterData, MeterConfig, MeterView};
pub use digest::{Digest, DigestConfig};
pub use entry::{
    ActionCall, CountedIn, DefaultView, Entry, EntryAction, EntryPlace, EntryView, KeyField, Of, OneShotGroup,
    OneShotMember, Selection,
};
pub use group::{Group, GroupMember, Member, ProfileLimit, ProfileSize};
pub use replica::{CloneSession, Replica};
pub use succession::{Array, EntryPair};
pub use undo::{SavedDefault, SavedEntry, SavedGroup, SavedMember, SavedMeter};

type Result<T> = std::result::Result<T, ControlError>;

/// Returns a value as 64-bit words, least significant word first, or an error if the value does not fit into `width`
/// bits. `what` names the value in the error message.
fn words(bytes: &[u8], width: u32, what: impl Display) -> Result<Vec<u64>> {
    let zeros = bytes.iter().take_while(|&&b| b == 0).count();
    let bytes = &bytes[zeros..];
    let bits = bytes.first().map_or(0, |b| 8 * bytes.len() - b.leading_zeros() as usize);
    if bits > width as usize {
        return Err(ControlError::InvalidArgument(format!(
            "{what}: the value needs {bits} bits, there are {width}; give one that fits"
        )));
    }
    if width <= 64 {
        return Ok(vec![bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b))]);
    }
    Ok(to_limbs(&BigUint::from_bytes_be(bytes).into(), width))
}

/// Returns the value as exactly `ceil(width / 8)` bytes.
fn bytes(words: &[u64], width: u32) -> Vec<u8> {
    limbs_to_bytes(words, width)
}

/// Checks an action call and packs its parameters into words.
fn call(program: &Program, call: &ActionCall) -> Result<Call> {
    let Some(action) = program.actions.get(call.action.index()) else {
        return Err(ControlError::InvalidArgument(format!(
            "there is no action {}; give one of the program",
            call.action.0
        )));
    };
    if call.params.len() != action.params.len() {
        let (name, n) = (&action.info.name, action.params.len());
        return Err(ControlError::InvalidArgument(format!(
            "action '{name}' has {n} parameters, {} are given; give one of each",
            call.params.len()
        )));
    }
    let mut params = Vec::with_capacity(action.words());
    for (value, info) in call.params.iter().zip(&action.info.params) {
        params.extend(words(
            value,
            info.width,
            format_args!("parameter '{}' of action '{}'", info.name, action.info.name),
        )?);
    }
    Ok(Call { action: call.action, params: params.into() })
}

/// Returns the action call that [`call`] has packed.
fn view_call(program: &Program, call: &Call) -> ActionCall {
    let mut at = 0;
    let mut params = Vec::new();
    for info in &program.actions[call.action.index()].info.params {
        let n = limbs(info.width);
        params.push(bytes(&call.params[at..at + n], info.width));
        at += n;
    }
    ActionCall { action: call.action, params }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings() {
        assert_eq!(words(&[], 8, "x").unwrap(), [0]);
        assert_eq!(words(&[0, 0, 1, 0xff], 9, "x").unwrap(), [0x1ff]);
        assert_eq!(words(&[1; 9], 72, "x").unwrap(), [0x0101_0101_0101_0101, 1]);
        let e = words(&[2, 0], 9, "key field 'a'").unwrap_err();
        assert_eq!(
            e.to_string(),
            "invalid argument: key field 'a': the value needs 10 bits, there are 9; give one that fits"
        );
        assert_eq!(bytes(&[0x1ff], 9), [1, 0xff]);
        assert_eq!(bytes(&[5, 1], 65), [1, 0, 0, 0, 0, 0, 0, 0, 5]);
    }
}
