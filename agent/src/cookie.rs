//! SYN cookies: the agent encodes the result of a handshake in its own initial sequence number (RFC 4987, section
//! 3.6).
//!
//! The initial sequence number consists of 22 bits of a keyed hash and 10 bits of plain data: time (2), class of the
//! client's MSS (3), the client's window scale (4), and whether the client permits SACK (1). The hash covers the plain
//! data, the addresses and ports of client and service, the client's initial sequence number and the full time, but no
//! data that only one agent has. So any agent with the same key can check the cookie.

use std::hash::Hasher;
use std::net::SocketAddrV4;

use siphasher::sip::SipHasher24;

use crate::seq::Seq;

/// Seconds per step of the time in a cookie. A cookie is valid for two to three steps.
const STEP_S: u64 = 128;
/// The client's MSS is rounded down to one of these values, in bytes; a smaller MSS counts as the first value.
const MSS: [u16; 8] = [216, 536, 1220, 1360, 1400, 1440, 1460, 8960];
/// The code for a client without window scaling.
const NO_SCALE: u8 = 15;

/// A key for SYN cookies.
pub type CookieKey = [u8; 16];

/// The TCP options of a client's SYN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientOptions {
    /// The client's MSS, in bytes.
    pub mss: u16,
    /// The client's window scale, if it offers one.
    pub scale: Option<u8>,
    /// Whether the client permits SACK.
    pub sack: bool,
}

impl ClientOptions {
    fn bits(self) -> u32 {
        let class = MSS.iter().rposition(|mss| *mss <= self.mss).unwrap_or(0) as u32;
        let scale = u32::from(self.scale.unwrap_or(NO_SCALE));
        class << 5 | scale << 1 | u32::from(self.sack)
    }

    fn of(bits: u32) -> ClientOptions {
        let scale = (bits >> 1 & 15) as u8;
        ClientOptions {
            mss: MSS[(bits >> 5 & 7) as usize],
            scale: (scale != NO_SCALE).then_some(scale),
            sack: bits & 1 == 1,
        }
    }
}

/// The parameters of a handshake that the cookie's hash covers, besides the client's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The content service's address and port.
    pub service: SocketAddrV4,
    /// The client's initial sequence number.
    pub isn: Seq,
}

/// The keys with which the agent makes and checks SYN cookies.
#[derive(Debug, Clone, Default)]
pub struct Cookies {
    current: CookieKey,
    former: Option<CookieKey>,
}

impl Cookies {
    /// Stores the keys. New cookies use the current key; cookies of the former key are still accepted.
    pub fn new(current: CookieKey, former: Option<CookieKey>) -> Cookies {
        Cookies { current, former: former.filter(|former| *former != current) }
    }

    /// Returns the cookie: the agent's initial sequence number for a handshake. `time_s` is a time in seconds that all
    /// agents share.
    pub fn make(&self, handshake: &Handshake, syn_options: ClientOptions, time_s: u64) -> Seq {
        let step = time_s / STEP_S;
        let clear = (step as u32 & 3) << 8 | syn_options.bits();
        Seq(hash(&self.current, handshake, step, clear) << 10 | clear)
    }

    /// Returns the options of the client's SYN, which the cookie contains, if the cookie is valid for this handshake.
    pub fn read(&self, handshake: &Handshake, cookie: Seq, time_s: u64) -> Option<ClientOptions> {
        let clear = cookie.0 & 0x3ff;
        // The two time bits distinguish four steps: the next step (of an agent whose clock is ahead), the current step,
        // and the two before it.
        let next = time_s / STEP_S + 1;
        let step = next.checked_sub(u64::from((next as u32).wrapping_sub(clear >> 8) & 3))?;
        let good = |key: &CookieKey| hash(key, handshake, step, clear) == cookie.0 >> 10;
        (good(&self.current) || self.former.as_ref().is_some_and(good)).then(|| ClientOptions::of(clear))
    }
}

/// Returns 22 bits of SipHash-2-4 (Aumasson and Bernstein 2012).
fn hash(key: &CookieKey, handshake: &Handshake, step: u64, clear: u32) -> u32 {
    let mut hasher = SipHasher24::new_with_key(key);
    let mut words = [0; 28];
    words[..4].copy_from_slice(&handshake.client.ip().octets());
    words[4..8].copy_from_slice(&handshake.service.ip().octets());
    words[8..10].copy_from_slice(&handshake.client.port().to_be_bytes());
    words[10..12].copy_from_slice(&handshake.service.port().to_be_bytes());
    words[12..16].copy_from_slice(&handshake.isn.0.to_be_bytes());
    words[16..24].copy_from_slice(&step.to_be_bytes());
    words[24..28].copy_from_slice(&clear.to_be_bytes());
    hasher.write(&words);
    hasher.finish() as u32 >> 10
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [CookieKey; 3] = [[1; 16], [2; 16], [3; 16]];
    const OFFER: ClientOptions = ClientOptions { mss: 1460, scale: Some(7), sack: true };
    const NOW: u64 = 1_000_000;

    fn handshake() -> Handshake {
        let address = |text: &str| text.parse().unwrap();
        Handshake { client: address("10.0.1.1:4711"), service: address("10.0.0.100:80"), isn: Seq(99) }
    }

    #[test]
    fn the_clients_options_come_back() {
        let cookies = Cookies::new(KEYS[0], None);
        for (mss, rounded_mss) in [(100, 216), (536, 536), (1459, 1440), (1460, 1460), (9000, 8960)] {
            for scale in [None, Some(0), Some(14)] {
                for sack in [false, true] {
                    let syn_options = ClientOptions { mss, scale, sack };
                    let cookie = cookies.make(&handshake(), syn_options, NOW);
                    assert_eq!(
                        cookies.read(&handshake(), cookie, NOW),
                        Some(ClientOptions { mss: rounded_mss, ..syn_options })
                    );
                }
            }
        }
    }

    #[test]
    fn a_cookie_expires() {
        let cookies = Cookies::new(KEYS[0], None);
        let cookie = cookies.make(&handshake(), OFFER, NOW);
        let good = |later: i64| cookies.read(&handshake(), cookie, NOW.checked_add_signed(later).unwrap()).is_some();
        assert!(good(0) && good(2 * STEP_S as i64) && good(-(STEP_S as i64)));
        for steps in 3..40 {
            assert!(!good(steps * STEP_S as i64), "{steps}");
        }
        assert!(!good(-2 * STEP_S as i64));
    }

    #[test]
    fn a_cookie_is_for_one_connection() {
        let cookies = Cookies::new(KEYS[0], None);
        let cookie = cookies.make(&handshake(), OFFER, NOW);
        let others = [
            Handshake { client: "10.0.1.1:4712".parse().unwrap(), ..handshake() },
            Handshake { client: "10.0.1.2:4711".parse().unwrap(), ..handshake() },
            Handshake { service: "10.0.0.100:81".parse().unwrap(), ..handshake() },
            Handshake { isn: Seq(98), ..handshake() },
        ];
        assert!(others.iter().all(|other| cookies.read(other, cookie, NOW).is_none()));
        assert!((0..32).all(|bit| cookies.read(&handshake(), Seq(cookie.0 ^ 1 << bit), NOW).is_none()));
    }

    #[test]
    fn the_former_key_is_good_as_well() {
        let cookie = Cookies::new(KEYS[0], None).make(&handshake(), OFFER, NOW);
        let read = |cookies: Cookies| cookies.read(&handshake(), cookie, NOW);
        assert_eq!(read(Cookies::new(KEYS[1], Some(KEYS[0]))), Some(OFFER));
        assert_eq!(read(Cookies::new(KEYS[1], Some(KEYS[2]))), None);
    }

    #[test]
    fn the_hash_is_siphash() {
        // The test vector in the paper's appendix: the message consists of the bytes 0 to 14, the key of the bytes 0 to
        // 15.
        let bytes: [u8; 16] = std::array::from_fn(|n| n as u8);
        let mut hasher = SipHasher24::new_with_key(&bytes);
        hasher.write(&bytes[..15]);
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }
}
