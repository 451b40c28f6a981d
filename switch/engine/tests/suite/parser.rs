//! Tests parser features: stacks, advance, lookahead, masks and errors.

use crate::common::Switch;

/// Parses a frame. Returns the number of the path through `parser.p4`, the parser's error, the value of the lookahead,
/// the index of the last item, and the bytes after the answer.
fn parse(s: &mut Switch, frame: &[u8]) -> (u8, u8, u128, u32, Vec<u8>) {
    let out = s.one(0, frame);
    let number = |bytes: &[u8]| bytes.iter().fold(0u128, |v, &b| v << 8 | u128::from(b));
    (out[0], out[1], number(&out[2..11]), number(&out[11..15]) as u32, out[15..].to_vec())
}

const TOO_SHORT: u8 = 2;
const STACK_OUT_OF_BOUNDS: u8 = 1;

#[test]
fn stacks_record_their_last_element() {
    for mut s in Switch::both("parser") {
        for (frame, last) in [
            (&[0x10, 0, 0x7f, 1, 9, 9][..], 0),
            (&[0x10, 0, 0x80, 1, 0, 2, 9, 9], 1),
            (&[0x1f, 0, 0xff, 1, 0x80, 2, 0x01, 3, 9], 2),
        ] {
            assert_eq!(parse(&mut s, frame), (1, 0, 0, last, frame.to_vec()));
        }
        let full = [0x10, 0, 0x80, 1, 0x80, 2, 0x80, 3, 0x80, 4];
        assert_eq!(parse(&mut s, &full), (1, STACK_OUT_OF_BOUNDS, 0, 2, full.to_vec()));
        assert_eq!(parse(&mut s, &full[..7]), (1, TOO_SHORT, 0, 1, full[..7].to_vec()));
    }
}

/// The parser skips bytes with `advance`. The switch must send the packet without the skipped bytes.
#[test]
fn advance_removes_the_bytes_that_it_skips() {
    for mut s in Switch::both("parser") {
        for (length, ahead) in [(0, 0x0304), (2, 0x0405), (6, 0x0607)] {
            let frame = [0x20, length, 1, 2, 3, 4, 5, 6, 7, 8];
            let rest = usize::from(4 + length / 2);
            let behind = [&frame[..2], &frame[rest..]].concat();
            assert_eq!(parse(&mut s, &frame), (2, 0, ahead, 0, behind));
        }
        // The advance skips half a byte, which is an invalid argument.
        let frame = [0x20, 1, 1, 2, 3, 4, 5, 6];
        assert_eq!(parse(&mut s, &frame), (0, 3, 0, 0, [&frame[..2], &frame[4..]].concat()));
        // In the first frame, the advance extends past the end of the frame. In the second frame, the lookahead does.
        let frame = [0x20, 14, 1, 2, 3, 4, 5, 6];
        assert_eq!(parse(&mut s, &frame), (0, TOO_SHORT, 0, 0, [&frame[..2], &frame[4..]].concat()));
        let frame = [0x20, 6, 1, 2, 3, 4, 5, 6];
        assert_eq!(parse(&mut s, &frame), (2, TOO_SHORT, 0, 0, [&frame[..2], &frame[7..]].concat()));
    }
}

#[test]
fn lookahead_of_more_than_a_word() {
    for mut s in Switch::both("parser") {
        let frame = [0x31, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc];
        assert_eq!(parse(&mut s, &frame), (3, 0, 0x3_1234_5678_9abc_deff, 0, frame.to_vec()));
        assert_eq!(parse(&mut s, &frame[..8]), (3, TOO_SHORT, 0, 0, frame[..8].to_vec()));
        assert_eq!(parse(&mut s, &[]), (0, TOO_SHORT, 0, 0, vec![]));
    }
}

#[test]
fn lookahead_of_whole_bytes() {
    for mut s in Switch::both("parser") {
        let frame = [0x50, 0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x21, 0xff];
        assert_eq!(parse(&mut s, &frame), (7, 0, 0x12_3456_789a_bcde_f021, 0, frame.to_vec()));
        assert_eq!(parse(&mut s, &frame[..11]), (7, 0, 0x12_3456_789a_bcde_f021, 0, frame[..11].to_vec()));
        assert_eq!(parse(&mut s, &frame[..10]), (7, TOO_SHORT, 0, 0, frame[..10].to_vec()));
        let frame = [0x6a, 0xbc, 0xde, 0xf0, 0x12, 0x34, 0x56];
        assert_eq!(parse(&mut s, &frame), (8, 0, 0x6a_bcde_f012_3456, 0, frame.to_vec()));
        assert_eq!(parse(&mut s, &frame[..6]), (8, TOO_SHORT, 0, 0, frame[..6].to_vec()));
    }
}

#[test]
fn the_first_case_under_its_mask_is_taken() {
    for mut s in Switch::both("parser") {
        for (kind, length, path) in [
            (0x40, 0x00, 4),
            (0x43, 0xf0, 4),
            (0x44, 0x00, 0),
            (0x40, 0x05, 5),
            (0x4f, 0x09, 5),
            (0x4f, 0x04, 6),
            (0x4f, 0x0a, 6),
            (0x4e, 0x0a, 0),
        ] {
            assert_eq!(
                parse(&mut s, &[kind, length, 1]),
                (path, 0, 0, 0, vec![kind, length, 1]),
                "{kind:x} {length:x}"
            );
        }
    }
}
