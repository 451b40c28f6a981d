//! The ports of the switch and their link states, on which group members and replicas depend.

use std::collections::BTreeMap;

use crate::bits;
use crate::fault::{Fault, Outcome};

/// All ports that [`Ports::set`] has added. The value is true while the link of the port is up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ports(BTreeMap<u32, bool>);

impl Ports {
    /// Adds a port or changes its link state. Returns whether the call changed anything.
    pub fn set(&mut self, port: u32, up: bool) -> bool {
        self.0.insert(port, up) != Some(up)
    }

    /// Returns whether the port exists and is up.
    pub fn is_up(&self, port: u32) -> bool {
        self.0.get(&port).copied().unwrap_or(false)
    }

    /// Returns all ports, each with a flag that is true if the port is up.
    pub fn iter(&self) -> impl Iterator<Item = (u32, bool)> {
        self.0.iter().map(|(port, up)| (*port, *up))
    }

    /// Decodes a member's `watch_port`. Returns `None` for an empty string.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a port that does not exist, `OUT_OF_RANGE` for a number of more than 32 bits.
    pub fn watched(&self, port: &[u8]) -> Outcome<Option<u32>> {
        if port.is_empty() {
            return Ok(None);
        }
        let number = number(port).map_err(|fault| fault.within("watch_port"))?;
        if self.0.contains_key(&number) {
            return Ok(Some(number));
        }
        let ports: Vec<_> = self.0.keys().map(u32::to_string).collect();
        Err(Fault::invalid(format!("watch_port: there is no port {number}; give one of [{}]", ports.join(", "))))
    }
}

/// Decodes a port number from the byte string that P4Runtime uses.
///
/// # Errors
/// `OUT_OF_RANGE` for an empty string or more than 32 bits.
pub fn number(port: &[u8]) -> Outcome<u32> {
    Ok(bits::unsigned(port, 32)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Encodes a port number as the byte string that P4Runtime uses.
pub fn encode(port: u32) -> Vec<u8> {
    bits::canonical(&port.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ports_that_exist_can_be_watched() {
        let mut ports = Ports::default();
        assert!(ports.set(1, true) && ports.set(257, false) && !ports.set(257, false));
        assert_eq!(ports.watched(&[]).unwrap(), None);
        assert_eq!(ports.watched(&[0, 1, 1]).unwrap(), Some(257));
        let fault = ports.watched(&[2]).unwrap_err();
        assert_eq!(fault.message, "watch_port: there is no port 2; give one of [1, 257]");
        assert!(ports.is_up(1) && !ports.is_up(257) && !ports.is_up(2));
        assert_eq!((encode(257), encode(0)), (vec![1, 1], vec![0]));
    }
}
