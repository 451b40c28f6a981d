//! Tests header stacks whose index is computed at run time. For `hdr.stack[i].isValid()` with such an index, p4c
//! generates JSON that BMv2 cannot load.

use crate::common::Switch;

#[test]
fn extracted_elements_are_valid() {
    let mut s = Switch::new("stacks");
    for count in 0..=3u8 {
        for index in [0, 1, 2, 3, 255] {
            let mut frame = vec![count, index, 9, 9];
            frame.extend((1..=count).map(|element| 0x10 * element));
            frame.push(0x77);
            let out = s.one(0, &frame);
            let is_valid = index < count;
            // An element after the end of the stack is invalid and reads as zero.
            let value = if is_valid { 0x10 * (index + 1) } else { 0 };
            assert_eq!(out[..4], [count, index, u8::from(is_valid), value], "{count} elements, index {index}");
            assert_eq!(out[4..], frame[4..]);
        }
    }
}
