//! Builds the frames of numbered connections from one template frame, with correct checksums.

use std::error::Error;

/// The length in bytes of the headers that every frame has: Ethernet, IPv4 without options, TCP without options.
pub const HEADERS: usize = 14 + 20 + 20;
pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

const IP_CHECKSUM: usize = 24;
const SOURCE: usize = 26;
const SOURCE_PORT: usize = 34;
/// The offset in bytes of the TCP sequence number in a frame. The acknowledgement number follows the sequence number
/// directly.
const NUMBERS: usize = 38;
const FLAGS: usize = 47;
const TCP_CHECKSUM: usize = 50;

/// Connections are numbered from 0. Each group of `PORTS` successive connections shares one source address, and their
/// source ports start at `FIRST_PORT`. The first group has the address `FIRST_ADDRESS`, in 10.128.0.0/9.
const PORTS: u32 = 50_000;
const FIRST_PORT: u32 = 10_000;
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 128, 0, 1]);

/// A frame whose source address, source port, TCP numbers and checksums [`Template::fill`] sets for each connection.
#[derive(Clone)]
pub struct Template {
    frame: Vec<u8>,
    /// The sums from which the checksums of the IPv4 header and of the TCP segment are computed. They cover the bytes
    /// that are equal for all connections.
    ip_sum: u32,
    tcp_sum: u32,
}

impl Template {
    pub fn new(mut frame: Vec<u8>) -> Result<Self, Box<dyn Error>> {
        if frame.len() < HEADERS || frame[12..15] != [0x08, 0x00, 0x45] || frame[23] != 6 {
            return Err("the frame is not one of Ethernet, IPv4 and TCP, without tag and options".into());
        }
        for (start, length) in [(IP_CHECKSUM, 2), (SOURCE, 4), (SOURCE_PORT, 2), (NUMBERS, 8), (TCP_CHECKSUM, 2)] {
            frame[start..start + length].fill(0);
        }
        let end = 14 + usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let segment = frame.get(34..end).ok_or("the frame is shorter than its IPv4 packet")?;
        let pseudo = sum(&frame[30..34]) + 6 + segment.len() as u32;
        let (ip_sum, tcp_sum) = (sum(&frame[14..34]), fold(pseudo + sum(segment)));
        Ok(Self { frame, ip_sum, tcp_sum })
    }

    /// Returns the frame of a connection. The eight bytes of `numbers` become the TCP sequence number and
    /// acknowledgement number.
    pub fn fill(&mut self, connection: u32, numbers: u64) -> &[u8] {
        let address = (FIRST_ADDRESS + connection / PORTS).to_be_bytes();
        let port = (FIRST_PORT + connection % PORTS) as u16;
        let frame = &mut self.frame;
        frame[SOURCE..SOURCE + 4].copy_from_slice(&address);
        frame[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&port.to_be_bytes());
        frame[NUMBERS..NUMBERS + 8].copy_from_slice(&numbers.to_be_bytes());
        let source = sum(&address);
        frame[IP_CHECKSUM..IP_CHECKSUM + 2].copy_from_slice(&complement(self.ip_sum + source));
        let tcp = complement(self.tcp_sum + source + u32::from(port) + sum(&numbers.to_be_bytes()));
        frame[TCP_CHECKSUM..TCP_CHECKSUM + 2].copy_from_slice(&tcp);
        frame
    }
}

/// Returns the frame's TCP flags; `None` unless the frame has the headers that [`HEADERS`] counts.
pub fn flags(frame: &[u8]) -> Option<u8> {
    (frame.len() >= HEADERS && frame[12..15] == [0x08, 0x00, 0x45] && frame[23] == 6).then(|| frame[FLAGS])
}

/// A TCP frame's sequence number (upper 32 bits) and acknowledgement number (lower 32 bits).
pub fn numbers(frame: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&frame[NUMBERS..NUMBERS + 8]);
    u64::from_be_bytes(bytes)
}

/// Writes the server's answer to a client's frame: addresses and ports are swapped, the TCP flags are set to `flags`,
/// and one byte is acknowledged.
pub fn answer(frame: &[u8], flags: u8, answer: &mut [u8; HEADERS]) {
    answer.copy_from_slice(&frame[..HEADERS]);
    for (to, from, length) in [(0, 6, 6), (6, 0, 6), (26, 30, 4), (30, 26, 4), (34, 36, 2), (36, 34, 2)] {
        answer[to..to + length].copy_from_slice(&frame[from..from + length]);
    }
    let [peer_number, own_number] = [(numbers(frame) >> 32) as u32, numbers(frame) as u32];
    answer[38..42].copy_from_slice(&own_number.to_be_bytes());
    answer[42..46].copy_from_slice(&peer_number.wrapping_add(1).to_be_bytes());
    answer[16..18].copy_from_slice(&40u16.to_be_bytes());
    answer[46..48].copy_from_slice(&[0x50, flags]);
    answer[IP_CHECKSUM..IP_CHECKSUM + 2].fill(0);
    answer[TCP_CHECKSUM..TCP_CHECKSUM + 2].fill(0);
    let ip = complement(sum(&answer[14..34]));
    answer[IP_CHECKSUM..IP_CHECKSUM + 2].copy_from_slice(&ip);
    let tcp = complement(sum(&answer[26..34]) + 6 + 20 + sum(&answer[34..]));
    answer[TCP_CHECKSUM..TCP_CHECKSUM + 2].copy_from_slice(&tcp);
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u32) -> u32 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

fn complement(sum: u32) -> [u8; 2] {
    (!fold(sum) as u16).to_be_bytes()
}
