//! The header that the data plane puts before a segment of a guessed connection: the options of the handshake, and the
//! number of the guessed server.

use crate::seq::Seq;
use crate::wire::{ETHERNET, IPV4, ether_type};

/// EtherType of segments of guessed connections (IEEE 802 local experimental).
pub const GUESSED: u16 = 0x88b6;

const LENGTH: usize = 14;
const NO_SCALE: u8 = 255;
const LARGEST_SCALE: u8 = 14;
/// The flag which says that the server has sent data or its FIN.
const SERVER_HAS_SENT: u8 = 1;
/// The MSS assumed for a client or server that announces less, in bytes.
pub const MIN_MSS: u16 = 64;

/// What the data plane has recorded about a guessed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The server's window scale; none if windows are not scaled.
    pub server_scale: Option<u8>,
    /// The client's window scale; none if windows are not scaled.
    pub client_scale: Option<u8>,
    /// Whether client and server permit SACK.
    pub sack: bool,
    /// Whether the server has already sent data or its FIN.
    pub server_has_sent: bool,
    /// The client's MSS in bytes.
    pub mss: u16,
    /// The guessed server's number in the data plane.
    pub server: u16,
    /// The client's initial sequence number.
    pub isn: Seq,
}

impl Facts {
    /// Parses a frame with the EtherType of guessed connections; returns the facts, and the IPv4 packet behind them.
    pub fn read(frame: &[u8]) -> Option<(Facts, &[u8])> {
        let (facts, packet) = frame.get(ETHERNET..)?.split_at_checked(LENGTH)?;
        let word = |at: usize| u16::from_be_bytes([facts[at], facts[at + 1]]);
        let scale = |at: usize| match facts[at] {
            NO_SCALE => Some(None),
            scale if scale <= LARGEST_SCALE => Some(Some(scale)),
            _ => None,
        };
        if ether_type(frame) != Some(GUESSED) || word(12) != IPV4 {
            return None;
        }
        let facts = Facts {
            server_scale: scale(0)?,
            client_scale: scale(1)?,
            sack: facts[2] != 0,
            server_has_sent: facts[3] & SERVER_HAS_SENT != 0,
            mss: word(4).max(MIN_MSS),
            server: word(6),
            isn: Seq(u32::from_be_bytes(std::array::from_fn(|n| facts[8 + n]))),
        };
        Some((facts, packet))
    }

    /// Returns a copy of the frame, with this header before the frame's IPv4 packet.
    pub fn write(&self, frame: &[u8]) -> Vec<u8> {
        let (mss, server, isn) = (self.mss.to_be_bytes(), self.server.to_be_bytes(), self.isn.0.to_be_bytes());
        let scales = [self.server_scale, self.client_scale].map(|scale| scale.unwrap_or(NO_SCALE));
        let flags = [u8::from(self.sack), if self.server_has_sent { SERVER_HAS_SENT } else { 0 }];
        let (macs, packet) = (&frame[..ETHERNET - 2], &frame[ETHERNET..]);
        let parts = [macs, &GUESSED.to_be_bytes(), &scales, &flags, &mss, &server, &isn, &IPV4.to_be_bytes(), packet];
        parts.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        server_scale: Some(9),
        client_scale: None,
        sack: true,
        server_has_sent: true,
        mss: 1400,
        server: 0x0102,
        isn: Seq(0xfffe_fdfc),
    };

    #[test]
    fn the_layout() {
        let frame = [&[2; 6][..], &[4; 6], &[8, 0], b"packet"].concat();
        let guessed = FACTS.write(&frame);
        assert_eq!(guessed[..12], frame[..12]);
        let header = [0x88, 0xb6, 9, 255, 1, 1, 0x05, 0x78, 1, 2, 0xff, 0xfe, 0xfd, 0xfc, 8, 0];
        assert_eq!(guessed[12..], [&header[..], b"packet"].concat());
        assert_eq!(Facts::read(&guessed), Some((FACTS, &b"packet"[..])));
        for length in 0..28 {
            assert_eq!(Facts::read(&guessed[..length]), None);
        }
    }

    #[test]
    fn a_scale_that_cannot_be_is_refused() {
        let frame = FACTS.write(&[0; 20]);
        for at in [14, 15] {
            for scale in 15..255 {
                let mut wrong = frame.clone();
                wrong[at] = scale;
                assert_eq!(Facts::read(&wrong), None);
            }
        }
    }

    #[test]
    fn a_client_that_takes_nothing_is_taken_to_take_something() {
        let frame = Facts { mss: 0, ..FACTS }.write(&[0; 20]);
        assert_eq!(Facts::read(&frame).map(|(facts, _)| facts.mss), Some(MIN_MSS));
    }
}
