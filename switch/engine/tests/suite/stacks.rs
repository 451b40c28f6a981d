//! Header stacks with an index that is known at run time only. p4c makes an `isValid()` of them that BMv2 does not load.

use crate::common::Switch;

#[test]
fn elements_are_valid_up_to_where_the_parser_came() {
    let mut s = Switch::new("stacks");
    for count in 0..=3u8 {
        for index in [0, 1, 2, 3, 255] {
            let mut frame = vec![count, index, 9, 9];
            frame.extend((1..=count).map(|element| 0x10 * element));
            frame.push(0x77);
            let out = s.one(0, &frame);
            let there = index < count;
            // beyond the end an element is not valid, and reads zero
            let value = if there { 0x10 * (index + 1) } else { 0 };
            assert_eq!(out[..4], [count, index, u8::from(there), value], "{count} elements, index {index}");
            assert_eq!(out[4..], frame[4..]);
        }
    }
}
