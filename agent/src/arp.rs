//! The Address Resolution Protocol (RFC 826): the agent answers requests for its own IPv4 address, and learns the
//! router's hardware address.

use std::net::Ipv4Addr;

use crate::wire::{ARP, ETHERNET, IPV4, Mac, pad};

const ETHERNET_HARDWARE: u16 = 1;
const LENGTH: usize = 28;
const BROADCAST: Mac = [0xff; 6];

/// The operation of an ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Requests the hardware address of an IPv4 address.
    Request,
    /// Answers a request.
    Reply,
}

/// An ARP packet for IPv4 over Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Request or reply.
    pub operation: Operation,
    /// The sender's hardware and IPv4 address.
    pub sender: (Mac, Ipv4Addr),
    /// The target's hardware and IPv4 address; in a request, the hardware address is zero.
    pub target: (Mac, Ipv4Addr),
}

impl Packet {
    /// Parses a frame whose EtherType is that of ARP. `None` if the packet is not a request or reply for IPv4 over
    /// Ethernet.
    pub fn read(frame: &[u8]) -> Option<Packet> {
        let packet = frame.get(ETHERNET..ETHERNET + LENGTH)?;
        let mac = |at: usize| std::array::from_fn(|n| packet[at + n]);
        let address = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&packet[at..at + 4]).unwrap_or_default());
        let operation = match packet[6..8] {
            [0, 1] => Operation::Request,
            [0, 2] => Operation::Reply,
            _ => return None,
        };
        let is_ours = packet[..2] == ETHERNET_HARDWARE.to_be_bytes() && packet[2..4] == IPV4.to_be_bytes();
        let sizes = packet[4..6] == [6, 4];
        (is_ours && sizes).then(|| Packet { operation, sender: (mac(8), address(14)), target: (mac(18), address(24)) })
    }

    /// Appends the packet to `frame` as an Ethernet frame: a request is broadcast, a reply is addressed to the target.
    pub fn write(&self, frame: &mut Vec<u8>) {
        let start = frame.len();
        let (destination, operation): (_, u16) = match self.operation {
            Operation::Request => (BROADCAST, 1),
            Operation::Reply => (self.target.0, 2),
        };
        frame.extend_from_slice(&destination);
        frame.extend_from_slice(&self.sender.0);
        for word in [ARP, ETHERNET_HARDWARE, IPV4] {
            frame.extend_from_slice(&word.to_be_bytes());
        }
        frame.extend_from_slice(&[6, 4]);
        frame.extend_from_slice(&operation.to_be_bytes());
        for (mac, address) in [self.sender, self.target] {
            frame.extend_from_slice(&mac);
            frame.extend_from_slice(&address.octets());
        }
        pad(frame, start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let ends = (([2; 6], Ipv4Addr::new(10, 0, 9, 1)), ([0; 6], Ipv4Addr::new(10, 0, 9, 2)));
        for operation in [Operation::Request, Operation::Reply] {
            let packet = Packet { operation, sender: ends.0, target: ends.1 };
            let mut frame = Vec::new();
            packet.write(&mut frame);
            assert_eq!(Packet::read(&frame), Some(packet));
            assert_eq!(Packet::read(&frame[..41]), None);
        }
    }
}
