//! Tests table keys that contain fields of invalid headers, or fields to which the program applies a mask. The results
//! must be those of BMv2 (`MatchKeyBuilder`).

use crate::common::{Switch, exact, lpm, range, ternary};
use sluice_engine::KeyField;

/// The values of the key fields of `keys.p4` in the packet.
const SMALL: u64 = 0x12;
const NUMBER: u64 = 0x1234;
const ADDRESS: u64 = 0x0a0b_0c0d;
const WIDE: [u8; 17] = *b"a wide key field.";
const SIGNED: u64 = 0xfd;
/// The value that the program `keys.p4` writes into each key field.
const WRITTEN: u64 = 9;

/// Returns the results of all tables for a packet, in the order in which the program applies the tables.
fn answers(s: &mut Switch, what: u8) -> Vec<u8> {
    let mut frame = vec![what, SMALL as u8];
    frame.extend((NUMBER as u16).to_be_bytes());
    frame.extend((ADDRESS as u32).to_be_bytes());
    frame.extend(WIDE);
    frame.push(SIGNED as u8);
    s.one(0, &frame)
}

/// The number of tables to which [`fill`] adds entries.
const FILLED: usize = 10;

/// Adds entries to [`FILLED`] tables. The results of a table's entries are 1 for zero, 2 for the packet's value, and 3
/// for the value that the program writes. In `valid_t`, they are 1 for an invalid header and 2 for a valid header.
fn fill(s: &mut Switch) {
    for (answer, small, number, address, signed) in
        [(1, 0, 0, 0, 0), (2, SMALL, NUMBER, ADDRESS, SIGNED), (3, WRITTEN, WRITTEN, WRITTEN, WRITTEN)]
    {
        s.insert("exact_t", vec![exact(1), exact(small), exact(number)], 0, "exact_is", &[answer]);
        let wide = if answer == 2 { KeyField::Exact(WIDE.to_vec()) } else { exact(small) };
        s.insert("wide_t", vec![wide], 0, "wide_is", &[answer]);
        s.insert("counted_t", vec![exact(signed)], 0, "counted_is", &[answer]);
        s.insert("prefix_t", vec![lpm(address, 32)], 0, "prefix_is", &[answer]);
        let any = KeyField::Optional(None);
        s.insert("ternary_t", vec![ternary(number, 0xffff), any], 1, "ternary_is", &[answer]);
        s.insert("range_t", vec![range(number, number)], 1, "range_is", &[answer]);
    }
    for (answer, small, number, address) in [(1, 0, 0, 0), (2, 0x10, 0x230, 0x0a0b_000d), (3, 0xf0, 0xff0, WRITTEN)] {
        s.insert("masked_exact_t", vec![exact(small)], 0, "masked_exact_is", &[answer]);
        s.insert("masked_prefix_t", vec![lpm(address, 32)], 0, "masked_prefix_is", &[answer]);
        s.insert("masked_ternary_t", vec![ternary(number, 0xffff)], 1, "masked_ternary_is", &[answer]);
    }
    for valid in [0, 1] {
        s.insert("valid_t", vec![exact(valid)], 0, "valid_is", &[valid + 1]);
    }
}

#[test]
fn the_key_of_an_invalid_header_is_zero() {
    for mut s in Switch::both("keys") {
        fill(&mut s);
        let mut results = |what: u8| answers(&mut s, what)[..FILLED].to_vec();
        let zeros = [1; FILLED];
        assert_eq!(results(0), zeros, "never valid");
        assert_eq!(results(4), zeros, "written, never valid");
        assert_eq!(results(1), [2; FILLED], "valid");
        assert_eq!(results(3), zeros, "removed");
        assert_eq!(results(7), zeros, "removed and written");
        assert_eq!(results(5), [3, 3, 3, 3, 3, 3, 2, 1, 3, 1], "valid and written");
    }
}

#[test]
fn a_mask_applies_only_to_the_lower_bound_of_a_range() {
    let byte = u64::from(WIDE[16]);
    for mut s in Switch::both("keys") {
        let mut priority = 0;
        let mut add = |s: &mut Switch, number, wide| {
            priority += 1;
            s.insert("masked_range_t", vec![number, wide], priority, "masked_range_is", &[priority as u64]);
            answers(s, 1)[FILLED]
        };
        let any = || KeyField::Optional(None);
        // Under the program's masks, the key contains 0x230 and the last byte of `WIDE`.
        assert_eq!(add(&mut s, range(0x200, 0x22f), any()), 0);
        assert_eq!(add(&mut s, range(0x240, 0xffff), any()), 0);
        assert_eq!(add(&mut s, range(0x235, 0x237), any()), 3);
        assert_eq!(add(&mut s, range(0xf23f, 0xf240), any()), 4);
        assert_eq!(add(&mut s, any(), range(0, byte - 1)), 4);
        assert_eq!(add(&mut s, any(), range(0x7700 | byte, 0x7700 | byte)), 6);
        assert_eq!(answers(&mut s, 3)[FILLED], 5, "zero after the header is removed");
    }
}
