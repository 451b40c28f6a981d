//! Computes the hash algorithms of v1model with the results that BMv2 computes.

use crc::{Algorithm, Crc, Table};

static CRC16: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&crc::CRC_16_ARC);
static CCITT: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&crc::CRC_16_IBM_3740);
static CRC8: Crc<u8, Table<16>> = Crc::<u8, Table<16>>::new(&crc::CRC_8_SMBUS);
/// Tables that process eight bytes at a time: `CRC32[n][b]` is the CRC-32/ISO-HDLC of byte `b` followed by `n` zero
/// bytes. The crate `crc` processes 16 bytes at a time, which is slower for the short keys of hashes.
static CRC32: [[u32; 256]; 8] = crc32_tables();

const fn crc32_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let crc = tables[t - 1][i];
            tables[t][i] = crc >> 8 ^ tables[0][(crc & 0xff) as usize];
            i += 1;
        }
        t += 1;
    }
    tables
}

/// Computes the CRC-32/ISO-HDLC of `data`, eight bytes at a time.
fn crc32(data: &[u8]) -> u32 {
    let (words, tail) = data.as_chunks::<8>();
    let mut crc = u32::MAX;
    for word in words {
        let v = u64::from_le_bytes(*word) ^ u64::from(crc);
        let at = |i: usize| CRC32[7 - i][(v >> (8 * i) & 0xff) as usize];
        crc = at(0) ^ at(1) ^ at(2) ^ at(3) ^ at(4) ^ at(5) ^ at(6) ^ at(7);
    }
    for &b in tail {
        crc = crc >> 8 ^ CRC32[0][((crc ^ u32::from(b)) & 0xff) as usize];
    }
    !crc
}

/// Returns the exclusive or of two CRC-32 values: the CRC of the 16 bytes of a 128-bit number, most significant byte
/// first, and the CRC of 16 zero bytes. CRCs are linear, and leading zero bytes do not change this exclusive or.
/// Therefore the function can be used for messages of up to 16 bytes. The CRC-32 of a message is the exclusive or of
/// this result and the CRC-32 of equally many zero bytes.
pub fn crc32_of_number(high: u64, low: u64) -> u32 {
    [high, low].into_iter().fold(0, |crc, word| {
        let v = word.swap_bytes() ^ u64::from(crc);
        (0..8).fold(0, |crc, i| crc ^ CRC32[7 - i][(v >> (8 * i) & 0xff) as usize])
    })
}

/// Computes CRC-32 by carry-less multiplication.
#[cfg(target_arch = "x86_64")]
pub mod clmul {
    use std::arch::x86_64::{
        _mm_and_si128, _mm_clmulepi64_si128, _mm_extract_epi32, _mm_set_epi64x, _mm_srli_si128, _mm_xor_si128,
    };

    /// Returns the result of [`super::crc32_of_number`]. The method is the folding and Barrett reduction of Gopal and
    /// others, "Fast CRC computation for generic polynomials using PCLMULQDQ instruction" (Intel, 2009), with the
    /// constants of the bit-reflected CRC-32 polynomial.
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub fn crc32_of_number(high: u64, low: u64) -> u32 {
        let fold = _mm_set_epi64x(0x1_63cd_6124, 0xccaa_009e);
        let reduce = _mm_set_epi64x(0x1_f701_1641, 0x1_db71_0641);
        let low_half = _mm_set_epi64x(0, 0xffff_ffff);
        let v = _mm_set_epi64x(low.swap_bytes() as i64, high.swap_bytes() as i64);
        // Fold 128 bits to 96 bits, then to 64 bits, then reduce them to 32 bits.
        let v = _mm_xor_si128(_mm_srli_si128(v, 8), _mm_clmulepi64_si128(v, fold, 0x00));
        let low = _mm_and_si128(v, low_half);
        let v = _mm_xor_si128(_mm_srli_si128(v, 4), _mm_clmulepi64_si128(low, fold, 0x10));
        let q = _mm_clmulepi64_si128(_mm_and_si128(v, low_half), reduce, 0x10);
        let q = _mm_clmulepi64_si128(_mm_and_si128(q, low_half), reduce, 0x00);
        _mm_extract_epi32(_mm_xor_si128(v, q), 1) as u32
    }
}

/// The initial parameters of BMv2's `crc64_custom`.
static CRC64_CUSTOM: Algorithm<u64> = Algorithm {
    width: 64,
    poly: 0x1b,
    init: 0,
    refin: true,
    refout: true,
    xorout: 0,
    check: 0x46a5_a938_8a5b_effe,
    residue: 0,
};
static CRC64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC64_CUSTOM);

/// A hash algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    /// CRC-16/ARC. These are also the initial parameters of BMv2's `crc16_custom`.
    Crc16,
    /// CRC-32/ISO-HDLC. These are also the initial parameters of BMv2's `crc32_custom`.
    Crc32,
    /// CRC-16/IBM-3740, which is also called "CCITT false".
    CrcCcitt,
    Crc8Custom,
    Crc64Custom,
    /// The Internet checksum (RFC 1071).
    Csum16,
    /// The exclusive or of the input's 16-bit words. An incomplete last word is padded with zero bytes at its end.
    Xor16,
    /// The exclusive or of the input's 32-bit words, padded like those of `Xor16`.
    Xor32,
    /// The first eight bytes of the input (all bytes of a shorter input) as a number, most significant byte first.
    Identity,
}

impl Hash {
    pub fn by_name(name: &str) -> Option<Hash> {
        Some(match name {
            "crc16" | "crc16_custom" => Hash::Crc16,
            "crc32" | "crc32_custom" => Hash::Crc32,
            "crcCCITT" => Hash::CrcCcitt,
            "crc8_custom" => Hash::Crc8Custom,
            "crc64_custom" => Hash::Crc64Custom,
            "csum16" | "cksum16" => Hash::Csum16,
            "xor16" => Hash::Xor16,
            "xor32" => Hash::Xor32,
            "identity" => Hash::Identity,
            _ => return None,
        })
    }

    pub fn of(self, data: &[u8]) -> u64 {
        match self {
            Hash::Crc16 => CRC16.checksum(data).into(),
            Hash::Crc32 => crc32(data).into(),
            Hash::CrcCcitt => CCITT.checksum(data).into(),
            Hash::Crc8Custom => CRC8.checksum(data).into(),
            Hash::Crc64Custom => CRC64.checksum(data),
            Hash::Csum16 => internet_checksum(data).into(),
            Hash::Xor16 => xor(data, 2),
            Hash::Xor32 => xor(data, 4),
            Hash::Identity => data.iter().take(8).fold(0, |v, &b| v << 8 | u64::from(b)),
        }
    }
}

/// Returns the Internet checksum (RFC 1071): the complement of the one's complement sum of the 16-bit words. If the
/// length is odd, the last byte is padded with a zero byte.
pub fn internet_checksum(data: &[u8]) -> u16 {
    !fold(sum_words(data).into())
}

/// Returns the one's complement sum of the 64-bit words, the last one padded with zero bytes. Folded to 16 bits by
/// [`fold`], it equals the one's complement sum of the 16-bit words.
pub fn sum_words(data: &[u8]) -> u64 {
    let (words, tail) = data.as_chunks::<8>();
    let mut last = [0; 8];
    last[..tail.len()].copy_from_slice(tail);
    words.iter().chain([&last]).fold(0, |sum: u64, w| {
        let (s, carry) = sum.overflowing_add(u64::from_be_bytes(*w));
        s + u64::from(carry)
    })
}

/// Folds a one's complement sum to 16 bits. The result is zero only if `sum` is zero.
pub fn fold(sum: u128) -> u16 {
    let sum = (sum >> 64) + (sum & u128::from(u64::MAX));
    let mut sum = (sum >> 32) as u64 + (sum as u64 & 0xffff_ffff);
    while sum >> 16 != 0 {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

fn xor(data: &[u8], size: usize) -> u64 {
    data.chunks(size).fold(0, |v, chunk| {
        let word = chunk.iter().fold(0, |w: u64, &b| w << 8 | u64::from(b));
        v ^ word << (8 * (size - chunk.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn check_values() {
        let digits = b"123456789";
        for (name, value) in [
            ("crc16", 0xbb3d),
            ("crc16_custom", 0xbb3d),
            ("crc32", 0xcbf4_3926),
            ("crcCCITT", 0x29b1),
            ("crc8_custom", 0xf4),
        ] {
            assert_eq!(Hash::by_name(name).unwrap().of(digits), value, "{name}");
        }
        assert_eq!(Hash::Crc64Custom.of(digits), naive_crc64(digits));
        assert_eq!(Hash::Identity.of(digits), 0x3132_3334_3536_3738);
        assert_eq!(Hash::Identity.of(&[1, 2]), 0x0102);
        assert_eq!(Hash::Xor16.of(&[0x12, 0x34, 0x56]), 0x1234 ^ 0x5600);
        assert_eq!(Hash::Xor32.of(&[1, 2, 3, 4, 5]), 0x0102_0304 ^ 0x0500_0000);
        assert_eq!(Hash::by_name("random"), None);
    }

    /// Computes the reflected CRC-64 with polynomial 0x1b, bit by bit.
    fn naive_crc64(data: &[u8]) -> u64 {
        let poly = 0x1bu64.reverse_bits();
        data.iter().fold(0u64, |crc, &b| {
            (0..8).fold(crc ^ u64::from(b), |c, _| if c & 1 == 1 { c >> 1 ^ poly } else { c >> 1 })
        })
    }

    #[test]
    fn known_ipv4_header() {
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(internet_checksum(&header), 0xb861);
    }

    proptest! {
        #[test]
        fn crc32_is_the_crates(data in proptest::collection::vec(any::<u8>(), 0..100)) {
            let reference = Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);
            prop_assert_eq!(crc32(&data), reference.checksum(&data));
        }

        #[test]
        fn short_crc32s_are_linear(data in proptest::collection::vec(any::<u8>(), 0..=16)) {
            let number = data.iter().fold(0u128, |n, &b| n << 8 | u128::from(b));
            let (high, low) = ((number >> 64) as u64, number as u64);
            let expected = crc32(&data) ^ crc32(&vec![0; data.len()]);
            prop_assert_eq!(crc32_of_number(high, low), expected);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("sse4.1") {
                // SAFETY: the condition above has checked that the processor has the required instructions.
                prop_assert_eq!(unsafe { clmul::crc32_of_number(high, low) }, expected);
            }
        }

        #[test]
        fn checksum_is_the_naive_sum(data in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut sum: u32 = data.chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0))).sum();
            while sum >> 16 != 0 {
                sum = (sum >> 16) + (sum & 0xffff);
            }
            prop_assert_eq!(internet_checksum(&data), !(sum as u16));
        }
    }
}
