//! Splice orders: packets by which the agent orders the data plane to translate a connection, or to send it the packets
//! of a guessed connection. The data plane answers by the same packet with another status.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::seq::Seq;
use crate::wire::{ETHERNET, Link, pad};

/// EtherType of orders (IEEE 802 local experimental).
pub const ORDER: u16 = 0x88b5;

/// Nanoseconds until the agent repeats an unanswered order; the interval doubles each time.
pub const REPEAT: u64 = 20_000_000;
/// The maximum number of times that the same order is sent.
pub const ORDERS: u32 = 7;

const LENGTH: usize = 23;
/// The largest window scale (RFC 7323, section 2.3).
const LARGEST_SCALE: u8 = 14;
const SPLICE: u8 = 1;

/// The data plane's answer to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The order is not answered yet.
    Order,
    /// The order was applied.
    Applied,
    /// The data plane has no entry of the connection.
    NoConnection,
    /// The connection's entry belongs to another agent, or the order did not arrive from an agent's port.
    Foreign,
}

/// What the data plane records about a client for its next connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remember {
    /// The data plane records nothing.
    Nothing,
    /// The client's next connection is opened to the same server, as a guess that an agent checks.
    Guess,
    /// The client's next connections belong to this server (`sticky: client`).
    Client,
}

/// The component that forwards the connection once the order is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The agent, which takes a guessed connection. The order's `delta` is then the client's initial sequence number.
    Agent,
    /// The data plane.
    Spliced,
}

/// A splice order, or the data plane's answer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The answer of the data plane.
    pub status: Status,
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The content service's address and port.
    pub service: SocketAddrV4,
    /// The delta: server's sequence number + delta = client's sequence number.
    pub delta: u32,
    /// Bits by which the server's window field is shifted left for the client; a negative value means a shift to the
    /// right.
    pub shift: i8,
    /// What the data plane records about the client.
    pub remember: Remember,
    /// The generation of the rules, modulo 256.
    pub generation: u8,
    /// The component that forwards the connection once the order is applied.
    pub turn: Turn,
    /// Bits by which the client's window field is shifted left for the server, except in a SYN.
    pub client_shift: u8,
}

impl Order {
    /// Creates the order by which an agent takes a guessed connection.
    pub fn take(client: SocketAddrV4, service: SocketAddrV4, isn: Seq) -> Order {
        Order {
            status: Status::Order,
            client,
            service,
            delta: isn.0,
            shift: 0,
            remember: Remember::Nothing,
            generation: 0,
            turn: Turn::Agent,
            client_shift: 0,
        }
    }

    /// Parses a frame with the EtherType of orders.
    pub fn read(frame: &[u8]) -> Option<Order> {
        let order = frame.get(ETHERNET..ETHERNET + LENGTH)?;
        let end = |at: usize| {
            let ip: [u8; 4] = std::array::from_fn(|n| order[at + n]);
            SocketAddrV4::new(Ipv4Addr::from(ip), u16::from_be_bytes([order[at + 4], order[at + 5]]))
        };
        let status = match order[1] {
            0 => Status::Order,
            1 => Status::Applied,
            2 => Status::NoConnection,
            3 => Status::Foreign,
            _ => return None,
        };
        let remember = match order[19] {
            0 => Remember::Nothing,
            1 => Remember::Guess,
            2 => Remember::Client,
            _ => return None,
        };
        let turn = match order[21] {
            0 => Turn::Agent,
            1 => Turn::Spliced,
            _ => return None,
        };
        (order[0] == SPLICE && order[22] <= LARGEST_SCALE).then(|| Order {
            status,
            client: end(2),
            service: end(8),
            delta: u32::from_be_bytes(std::array::from_fn(|n| order[14 + n])),
            shift: order[18] as i8,
            remember,
            generation: order[20],
            turn,
            client_shift: order[22],
        })
    }

    /// Appends the order as an Ethernet frame to `frame`.
    pub fn write(&self, link: &Link, frame: &mut Vec<u8>) {
        let start = frame.len();
        frame.extend_from_slice(&link.router);
        frame.extend_from_slice(&link.own);
        frame.extend_from_slice(&ORDER.to_be_bytes());
        let status = match self.status {
            Status::Order => 0,
            Status::Applied => 1,
            Status::NoConnection => 2,
            Status::Foreign => 3,
        };
        frame.extend_from_slice(&[SPLICE, status]);
        for end in [self.client, self.service] {
            frame.extend_from_slice(&end.ip().octets());
            frame.extend_from_slice(&end.port().to_be_bytes());
        }
        frame.extend_from_slice(&self.delta.to_be_bytes());
        let remember = match self.remember {
            Remember::Nothing => 0,
            Remember::Guess => 1,
            Remember::Client => 2,
        };
        let turn = match self.turn {
            Turn::Agent => 0,
            Turn::Spliced => 1,
        };
        frame.extend_from_slice(&[self.shift as u8, remember, self.generation, turn, self.client_shift]);
        pad(frame, start);
    }
}

/// Translates a window field for the other host: shifts it left by `shift` bits (right if `shift` is negative), and
/// limits the result to 65,535. A nonzero window never becomes 0.
pub fn shifted(window: u16, shift: i8) -> u16 {
    if shift >= 0 {
        let wide = u32::from(window) << shift.min(16);
        u16::try_from(wide).unwrap_or(u16::MAX)
    } else {
        let narrow = u32::from(window) >> shift.unsigned_abs().min(31);
        (narrow as u16).max(u16::from(window > 0))
    }
}

/// Returns the number that is added to the server's sequence numbers to get the client's.
pub fn delta(client: Seq, server: Seq) -> u32 {
    client.0.wrapping_sub(server.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { own: [2; 6], router: [4; 6] };

    fn order() -> Order {
        Order {
            status: Status::Order,
            client: "10.0.1.1:4711".parse().unwrap(),
            service: "10.0.0.100:80".parse().unwrap(),
            delta: 0x0102_0304,
            shift: -3,
            remember: Remember::Client,
            generation: 7,
            turn: Turn::Spliced,
            client_shift: 14,
        }
    }

    #[test]
    fn the_layout() {
        let mut frame = Vec::new();
        order().write(&LINK, &mut frame);
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[12..14], [0x88, 0xb5]);
        let fields =
            [&[1, 0][..], &[10, 0, 1, 1, 0x12, 0x67], &[10, 0, 0, 100, 0, 80], &[1, 2, 3, 4], &[0xfd, 2, 7, 1, 14]];
        assert_eq!(frame[14..37], fields.concat());
        assert_eq!(frame[37..], [0; 23]);
        frame[36] = 15;
        assert_eq!(Order::read(&frame), None, "no window scale is that large");
    }

    #[test]
    fn what_is_written_is_read() {
        for status in [Status::Order, Status::Applied, Status::NoConnection, Status::Foreign] {
            for remember in [Remember::Nothing, Remember::Guess, Remember::Client] {
                let turn = if remember == Remember::Nothing { Turn::Agent } else { Turn::Spliced };
                let order = Order { status, remember, turn, ..order() };
                let mut frame = Vec::new();
                order.write(&LINK, &mut frame);
                assert_eq!(Order::read(&frame), Some(order));
                assert_eq!(Order::read(&frame[..36]), None);
            }
        }
    }

    #[test]
    fn a_window_is_shifted() {
        let cases =
            [(100, 0, 100), (100, 3, 800), (40_000, 3, 65_535), (100, -3, 12), (5, -3, 1), (0, -3, 0), (0, 14, 0)];
        for (window, shift, expected) in cases {
            assert_eq!(shifted(window, shift), expected, "{window} by {shift}");
        }
    }
}
