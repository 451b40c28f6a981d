//! Ethernet, IPv4 (RFC 791) and TCP (RFC 9293) headers: parsing, writing, and rewriting in place.

use std::net::{Ipv4Addr, SocketAddrV4};

use crate::checksum::{Sum, changed};
use crate::seq::Seq;

/// A hardware address.
pub type Mac = [u8; 6];

/// The length of an Ethernet header in bytes.
pub const ETHERNET: usize = 14;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of the Address Resolution Protocol.
pub const ARP: u16 = 0x0806;
/// The shortest frame in bytes, without its check sequence.
pub const MIN_FRAME: usize = 60;

const TCP: u8 = 6;
const TIME_TO_LIVE: u8 = 64;

/// Flags of a TCP header.
pub mod flags {
    /// The sender sends no more data.
    pub const FIN: u8 = 0x01;
    /// Synchronizes sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Resets the connection.
    pub const RST: u8 = 0x04;
    /// The receiver should pass the data on to its application at once.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number is valid.
    pub const ACK: u8 = 0x10;
}

use flags::{ACK, FIN, RST, SYN};

/// The kinds of the TCP options that the agent processes.
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;

/// Returns the EtherType of a frame.
pub fn ether_type(frame: &[u8]) -> Option<u16> {
    u16_at(frame, 12)
}

/// Returns the hardware addresses of a frame: destination and source.
pub fn macs(frame: &[u8]) -> Option<(Mac, Mac)> {
    Some((frame.get(..6)?.try_into().ok()?, frame.get(6..12)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A complete TCP segment in a frame, with valid checksums.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'f> {
    /// The bytes from the IPv4 header to the end of the packet.
    packet: &'f [u8],
    /// The offsets, in bytes, of the TCP header and of its payload in `packet`.
    tcp: usize,
    data: usize,
}

/// Why a frame contains no segment for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreadable {
    /// The frame is truncated, or its length fields contradict each other.
    Malformed,
    /// The packet does not contain TCP, or it is a fragment.
    Other,
    /// A checksum is wrong.
    Checksum,
}

impl<'f> Segment<'f> {
    /// Parses a frame with the EtherType of IPv4.
    ///
    /// # Errors
    /// Fails if the frame does not contain a complete TCP segment with valid checksums.
    pub fn read(frame: &'f [u8]) -> Result<Self, Unreadable> {
        Self::of_packet(frame.get(ETHERNET..).ok_or(Unreadable::Malformed)?)
    }

    /// Parses an IPv4 packet, which may be followed by the padding of its frame.
    ///
    /// # Errors
    /// Fails if the packet is not a complete TCP segment with valid checksums.
    pub fn of_packet(packet: &'f [u8]) -> Result<Self, Unreadable> {
        let (&first, length) = packet.first().zip(u16_at(packet, 2)).ok_or(Unreadable::Malformed)?;
        let tcp = usize::from(first & 15) * 4;
        let packet = packet.get(..usize::from(length)).ok_or(Unreadable::Malformed)?;
        if first >> 4 != 4 || tcp < 20 || packet.len() < tcp {
            return Err(Unreadable::Malformed);
        }
        // A packet is a fragment if its fragment offset is nonzero, or if more fragments follow.
        if packet[9] != TCP || u16::from_be_bytes([packet[6], packet[7]]) & 0x3fff != 0 {
            return Err(Unreadable::Other);
        }
        let data = packet.get(tcp + 12).map(|offset| tcp + usize::from(offset >> 4) * 4);
        let data = data.filter(|data| *data >= tcp + 20 && *data <= packet.len()).ok_or(Unreadable::Malformed)?;
        let segment = Segment { packet, tcp, data };
        let header = Sum::default().bytes(&packet[..tcp]);
        if header.folded() != 0xffff || segment.pseudo_header().bytes(&packet[tcp..]).folded() != 0xffff {
            return Err(Unreadable::Checksum);
        }
        Ok(segment)
    }

    /// Returns the sum of the pseudo-header (RFC 9293, section 3.1): addresses, protocol and length.
    fn pseudo_header(&self) -> Sum {
        Sum::default().bytes(&self.packet[12..20]).word(u16::from(TCP)).word((self.packet.len() - self.tcp) as u16)
    }

    fn address(&self, ip: usize, port: usize) -> SocketAddrV4 {
        let octets: [u8; 4] = std::array::from_fn(|n| self.packet[ip + n]);
        let port = [self.packet[self.tcp + port], self.packet[self.tcp + port + 1]];
        SocketAddrV4::new(Ipv4Addr::from(octets), u16::from_be_bytes(port))
    }

    fn number(&self, at: usize) -> Seq {
        let at = self.tcp + at;
        Seq(u32::from_be_bytes(std::array::from_fn(|n| self.packet[at + n])))
    }

    /// Returns the IPv4 identification.
    pub fn identification(&self) -> u16 {
        u16::from_be_bytes([self.packet[4], self.packet[5]])
    }

    /// Returns the source address and port.
    pub fn source(&self) -> SocketAddrV4 {
        self.address(12, 0)
    }

    /// Returns the destination address and port.
    pub fn destination(&self) -> SocketAddrV4 {
        self.address(16, 2)
    }

    /// Returns the sequence number.
    pub fn seq(&self) -> Seq {
        self.number(4)
    }

    /// Returns the acknowledgement number.
    pub fn ack(&self) -> Seq {
        self.number(8)
    }

    /// Returns whether all of these flags are set.
    pub fn has(&self, flags: u8) -> bool {
        self.packet[self.tcp + 13] & flags == flags
    }

    /// Returns the window field, unscaled.
    pub fn window(&self) -> u16 {
        u16::from_be_bytes([self.packet[self.tcp + 14], self.packet[self.tcp + 15]])
    }

    /// Returns the payload.
    pub fn payload(&self) -> &'f [u8] {
        &self.packet[self.data..]
    }

    /// Returns the sequence number after the payload, or after the FIN if there is one.
    pub fn end(&self) -> Seq {
        self.seq() + self.payload().len() as u32 + u32::from(self.has(FIN))
    }

    /// Returns the TCP options as raw bytes.
    pub fn options(&self) -> &'f [u8] {
        &self.packet[self.tcp + 20..self.data]
    }

    /// Returns the smallest sequence number at which a block of the SACK option starts.
    pub fn first_sack(&self) -> Option<Seq> {
        let (_, blocks) = Options(self.options()).find(|(kind, _)| *kind == SACK)?;
        let starts = blocks.chunks_exact(8).map(|block| Seq(u32::from_be_bytes(std::array::from_fn(|n| block[n]))));
        starts.reduce(Seq::earlier)
    }

    /// Parses the options of a SYN.
    pub fn syn_options(&self) -> SynOptions {
        let mut syn_options = SynOptions::default();
        for (kind, value) in Options(self.options()) {
            match (kind, value) {
                (MSS, &[high, low]) => syn_options.mss = Some(u16::from_be_bytes([high, low])),
                // RFC 7323, section 2.3: a scale above 14 counts as 14.
                (SCALE, &[scale]) => syn_options.scale = Some(scale.min(14)),
                (SACK_PERMITTED, []) => syn_options.sack = true,
                _ => {}
            }
        }
        syn_options
    }
}

/// Those TCP options of a SYN that the agent uses. An absent option is `None` or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SynOptions {
    /// MSS in bytes.
    pub mss: Option<u16>,
    /// Window scale (RFC 7323).
    pub scale: Option<u8>,
    /// SACK permitted (RFC 2018).
    pub sack: bool,
}

impl SynOptions {
    /// Returns a buffer that begins with the encoded options, and their length in bytes.
    pub fn write(&self) -> ([u8; 12], usize) {
        let mut options = [NOP; 12];
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            options[length..length + bytes.len()].copy_from_slice(bytes);
            length += bytes.len();
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            put(&[MSS, 4, high, low]);
        }
        if self.sack {
            put(&[NOP, NOP, SACK_PERMITTED, 2]);
        }
        if let Some(scale) = self.scale {
            put(&[NOP, SCALE, 3, scale]);
        }
        (options, length)
    }
}

/// Iterates over the options of a TCP header, as pairs of kind and value. Ends at the first malformed option.
struct Options<'p>(&'p [u8]);

impl<'p> Iterator for Options<'p> {
    type Item = (u8, &'p [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.0 {
                [NOP, ref rest @ ..] => self.0 = rest,
                [END, ..] | [] => return None,
                [kind, length, ..] => {
                    let value = self.0.get(2..usize::from(length))?;
                    self.0 = &self.0[usize::from(length)..];
                    return Some((kind, value));
                }
                _ => return None,
            }
        }
    }
}

/// Returns a buffer that begins with a SACK option (RFC 2018, section 3) of up to four blocks, and the option's length
/// in bytes.
pub fn sack_option(blocks: impl Iterator<Item = (Seq, Seq)>) -> ([u8; 36], usize) {
    let mut option = [NOP; 36];
    let mut length = 4;
    for (start, end) in blocks.take(4) {
        option[length..length + 4].copy_from_slice(&start.0.to_be_bytes());
        option[length + 4..length + 8].copy_from_slice(&end.0.to_be_bytes());
        length += 8;
    }
    if length == 4 {
        return (option, 0);
    }
    option[2..4].copy_from_slice(&[SACK, length as u8 - 2]);
    (option, length)
}

/// Subtracts `delta` from the edges of the SACK blocks. If an edge is then before `from`, NOPs replace the complete
/// SACK option. NOPs also replace all bytes from the first malformed option, or from the end-of-options mark, to the
/// end.
fn shift_sacks(options: &mut [u8], delta: u32, from: Seq) {
    let mut at = 0;
    while at < options.len() {
        let kind = options[at];
        if kind == NOP {
            at += 1;
            continue;
        }
        let length = options.get(at + 1).map_or(0, |length| usize::from(*length));
        if kind == END || length < 2 || at + length > options.len() {
            // Bytes behind the end-of-options mark are padding (RFC 9293, section 3.1).
            options[at..].fill(NOP);
            return;
        }
        if kind == SACK {
            let value = &mut options[at + 2..at + length];
            let mut is_good = value.len().is_multiple_of(8);
            for edge in value.chunks_exact_mut(4) {
                let number = Seq(u32::from_be_bytes([edge[0], edge[1], edge[2], edge[3]])) - delta;
                is_good &= !number.is_before(from);
                edge.copy_from_slice(&number.0.to_be_bytes());
            }
            if !is_good {
                options[at..at + length].fill(NOP);
            }
        }
        at += length;
    }
}

/// The hardware addresses of outgoing frames.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// The agent's hardware address.
    pub own: Mac,
    /// The router's hardware address.
    pub router: Mac,
}

/// The addresses and TCP header fields of an outgoing segment.
#[derive(Debug, Clone, Copy)]
pub struct SegmentHeader {
    /// Source address and port.
    pub source: SocketAddrV4,
    /// Destination address and port.
    pub destination: SocketAddrV4,
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number; zero without the flag ACK.
    pub ack: Seq,
    /// TCP flags, as in [`flags`].
    pub flags: u8,
    /// Window field, unscaled.
    pub window: u16,
}

impl SegmentHeader {
    /// Appends a frame with this header, options (a multiple of four bytes) and payload (two consecutive parts) to
    /// `frame`.
    pub fn write(&self, link: &Link, options: &[u8], payload: [&[u8]; 2], frame: &mut Vec<u8>) {
        self.write_identified(link, 0, options, payload, frame);
    }

    /// Appends the same frame as [`Self::write`], with the given IPv4 identification.
    pub fn write_identified(
        &self,
        link: &Link,
        identification: u16,
        options: &[u8],
        payload: [&[u8]; 2],
        frame: &mut Vec<u8>,
    ) {
        let tcp_header = 20 + options.len();
        let tcp_length = tcp_header + payload[0].len() + payload[1].len();
        let mut head = [0u8; ETHERNET + 40];
        head[..6].copy_from_slice(&link.router);
        head[6..12].copy_from_slice(&link.own);
        head[12..14].copy_from_slice(&IPV4.to_be_bytes());
        let (ip, tcp) = head[ETHERNET..].split_at_mut(20);
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((20 + tcp_length) as u16).to_be_bytes());
        // Because the flag DF (do not fragment) is set, the identification may have any value (RFC 6864, section 4.1).
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        ip[6] = 0x40;
        ip[8..10].copy_from_slice(&[TIME_TO_LIVE, TCP]);
        ip[12..16].copy_from_slice(&self.source.ip().octets());
        ip[16..20].copy_from_slice(&self.destination.ip().octets());
        let checksum = Sum::default().bytes(ip).checksum();
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        tcp[..2].copy_from_slice(&self.source.port().to_be_bytes());
        tcp[2..4].copy_from_slice(&self.destination.port().to_be_bytes());
        tcp[4..8].copy_from_slice(&self.seq.0.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.0.to_be_bytes());
        tcp[12..14].copy_from_slice(&[(tcp_header as u8 / 4) << 4, self.flags]);
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        let pseudo = Sum::default().bytes(&ip[12..20]).word(u16::from(TCP)).word(tcp_length as u16);
        let start = frame.len();
        frame.extend_from_slice(&head);
        frame.extend_from_slice(options);
        frame.extend_from_slice(payload[0]);
        frame.extend_from_slice(payload[1]);
        let tcp = &mut frame[start + ETHERNET + 20..];
        let checksum = pseudo.bytes(tcp).checksum();
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        pad(frame, start);
    }
}

/// Pads the frame that begins at `start` to the minimum length of an Ethernet frame.
pub fn pad(frame: &mut Vec<u8>, start: usize) {
    if frame.len() - start < MIN_FRAME {
        frame.resize(start + MIN_FRAME, 0);
    }
}

/// Returns the window field for a window of `bytes` bytes and the window scale `scale`, limited to 65,535. A nonzero
/// window never becomes 0.
pub fn window_field(bytes: usize, scale: u8) -> u16 {
    u16::try_from((bytes >> scale).max(usize::from(bytes > 0))).unwrap_or(u16::MAX)
}

/// The changes to the headers of a segment that is forwarded.
#[derive(Debug, Clone, Copy)]
pub struct HeaderRewrite {
    /// The new addresses, sequence number, acknowledgement number and window. Other fields, such as PSH and URG, stay
    /// unchanged; `flags` is ignored.
    pub head: SegmentHeader,
    /// The number to subtract from the edges of SACK blocks, and the sequence number before which no resulting edge may
    /// be; otherwise the option is removed. None: SACK options stay unchanged.
    pub sacks: Option<(u32, Seq)>,
}

/// Appends to `frame` a frame with the segment, whose headers are changed according to `rewrite`. The checksum is
/// updated incrementally (RFC 1624), so that the receiver still detects a payload that was damaged in the agent.
pub fn write_rewritten(segment: &Segment<'_>, link: &Link, rewrite: &HeaderRewrite, frame: &mut Vec<u8>) {
    let HeaderRewrite { head, sacks } = rewrite;
    let start = frame.len();
    frame.extend_from_slice(&link.router);
    frame.extend_from_slice(&link.own);
    frame.extend_from_slice(&IPV4.to_be_bytes());
    frame.extend_from_slice(segment.packet);
    let packet = &mut frame[start + ETHERNET..];
    let (ip, tcp) = packet.split_at_mut(segment.tcp);
    let header = segment.data - segment.tcp;
    let tcp = &mut tcp[..header];
    let before = Sum::default().bytes(&ip[12..20]).bytes(&tcp[..16]).bytes(&tcp[18..]);
    let ip_before = Sum::default().bytes(&ip[..10]).bytes(&ip[12..]);
    ip[12..16].copy_from_slice(&head.source.ip().octets());
    ip[16..20].copy_from_slice(&head.destination.ip().octets());
    ip[8] = TIME_TO_LIVE;
    let ip_after = Sum::default().bytes(&ip[..10]).bytes(&ip[12..]);
    let checksum = changed(u16::from_be_bytes([ip[10], ip[11]]), ip_before, ip_after);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    tcp[..2].copy_from_slice(&head.source.port().to_be_bytes());
    tcp[2..4].copy_from_slice(&head.destination.port().to_be_bytes());
    tcp[4..8].copy_from_slice(&head.seq.0.to_be_bytes());
    tcp[8..12].copy_from_slice(&head.ack.0.to_be_bytes());
    tcp[14..16].copy_from_slice(&head.window.to_be_bytes());
    if let Some((delta, from)) = *sacks {
        shift_sacks(&mut tcp[20..], delta, from);
    }
    let after = Sum::default().bytes(&ip[12..20]).bytes(&tcp[..16]).bytes(&tcp[18..]);
    let checksum = changed(u16::from_be_bytes([tcp[16], tcp[17]]), before, after);
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    pad(frame, start);
}

/// Returns the header of a RST that answers a segment (RFC 9293, section 3.10.7.1).
pub fn reset(segment: &Segment<'_>, source: SocketAddrV4, destination: SocketAddrV4) -> SegmentHeader {
    let (seq, ack, flags) = if segment.has(ACK) {
        (segment.ack(), Seq(0), RST)
    } else {
        (Seq(0), segment.end() + u32::from(segment.has(SYN)), RST | ACK)
    };
    SegmentHeader { source, destination, seq, ack, flags, window: 0 }
}

#[cfg(test)]
mod tests {
    use super::flags::PSH;
    use super::*;

    const LINK: Link = Link { own: [2, 0, 0, 0, 0, 2], router: [2, 0, 0, 0, 0, 1] };

    fn head() -> SegmentHeader {
        let address = |text: &str| text.parse().unwrap();
        let (source, destination) = (address("10.0.1.1:4711"), address("10.0.9.2:8080"));
        SegmentHeader { source, destination, seq: Seq(1000), ack: Seq(5000), flags: ACK | PSH, window: 229 }
    }

    fn frame(head: SegmentHeader, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        head.write(&LINK, options, [payload, b""], &mut frame);
        frame
    }

    #[test]
    fn what_is_written_is_read() {
        for payload in [&b""[..], b"G", b"GET / HTTP/1.1\r\n\r\n"] {
            let frame = frame(head(), &[], payload);
            let segment = Segment::read(&frame).unwrap();
            assert_eq!((segment.source(), segment.destination()), (head().source, head().destination));
            assert_eq!((segment.seq(), segment.ack(), segment.window()), (Seq(1000), Seq(5000), 229));
            assert_eq!((segment.payload(), segment.end()), (payload, Seq(1000) + payload.len() as u32));
            assert!(segment.has(ACK | PSH) && !segment.has(FIN));
            assert!(frame.len() >= MIN_FRAME);
        }
    }

    #[test]
    fn a_frame_cut_or_changed_anywhere_is_refused() {
        let complete = frame(head(), &[], b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        for length in 0..complete.len() {
            assert!(Segment::read(&complete[..length]).is_err());
        }
        for at in ETHERNET..complete.len() {
            let mut changed = complete.clone();
            changed[at] ^= 0x20;
            assert!(Segment::read(&changed).is_err(), "{at}");
        }
        let mut fragment = complete.clone();
        fragment[ETHERNET + 6] |= 0x20;
        assert_eq!(Segment::read(&fragment).unwrap_err(), Unreadable::Other);
    }

    #[test]
    fn options_of_a_syn() {
        for mss in [None, Some(1400)] {
            for scale in [None, Some(9)] {
                for sack in [false, true] {
                    let syn_options = SynOptions { mss, scale, sack };
                    let (options, length) = syn_options.write();
                    assert_eq!(
                        Segment::read(&frame(head(), &options[..length], b"")).unwrap().syn_options(),
                        syn_options
                    );
                }
            }
        }
        let odd = |options: &[u8]| Segment::read(&frame(head(), options, b"")).unwrap().syn_options();
        let none = SynOptions::default();
        assert_eq!(odd(&[SCALE, 3, 200, END]), SynOptions { scale: Some(14), ..none });
        assert_eq!(odd(&[MSS, 3, 5, NOP]), none);
        assert_eq!(odd(&[MSS, 4, 5, 0, SCALE, 0, 0, 0]), SynOptions { mss: Some(1280), ..none });
        assert_eq!(odd(&[END, END, NOP, NOP, SACK_PERMITTED, 2, NOP, NOP]), none);
        // Options of MPTCP and TFO, and an experimental option, come first.
        assert_eq!(odd(&[30, 4, 0, 1, 34, 2, 254, 4, 1, 2, SACK_PERMITTED, 2]), SynOptions { sack: true, ..none });
    }

    #[test]
    fn a_segment_passed_on_has_the_right_checksums() {
        let blocks = [(Seq(7000), Seq(8000)), (Seq(9000), Seq(9500))];
        let (options, length) = sack_option(blocks.into_iter());
        // The test covers even and odd offsets of the SACK option.
        for before in 0..8 {
            let mut room = vec![NOP; before];
            room.extend(&options[..length]);
            room.resize(room.len().next_multiple_of(4), NOP);
            let original = frame(head(), &room, b"odd");
            let next = SegmentHeader { seq: Seq(u32::MAX), ack: Seq(4000), window: 3, ..head() };
            let next = SegmentHeader { source: next.destination, destination: next.source, ..next };
            let mut passed = Vec::new();
            let rewrite = HeaderRewrite { head: next, sacks: Some((1000, Seq(4000))) };
            write_rewritten(&Segment::read(&original).unwrap(), &LINK, &rewrite, &mut passed);
            let segment = Segment::read(&passed).unwrap();
            assert_eq!((segment.seq(), segment.ack(), segment.payload()), (Seq(u32::MAX), Seq(4000), &b"odd"[..]));
            let shifted = blocks.map(|(start, end)| (start - 1000, end - 1000));
            let (shifted, length) = sack_option(shifted.into_iter());
            assert_eq!(segment.options()[before..][..length], shifted[..length]);
        }
    }

    #[test]
    fn a_sack_block_of_what_is_not_the_servers_is_dropped() {
        let (mut options, length) = sack_option([(Seq(7000), Seq(8000)), (Seq(100), Seq(200))].into_iter());
        shift_sacks(&mut options[..length], 50, Seq(60));
        assert_eq!(options[2], NOP);
        let mut cut = [NOP, SACK, 10, 1, 2, 3];
        shift_sacks(&mut cut, 1, Seq(0));
        assert_eq!(cut, [NOP; 6]);
    }
}
