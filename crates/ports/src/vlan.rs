//! Reinserts VLAN tags into received frames, because the kernel removes the tags and reports them separately.

/// The length of a tag in bytes.
pub const VLAN_TAG: usize = 4;

const MAC_ADDRESSES: usize = 12;
const ETHERTYPE_VLAN: u16 = 0x8100;

/// A tag that the kernel has removed from a frame.
#[derive(Debug, Clone, Copy)]
pub struct Tag {
    tpid: u16,
    tci: u16,
}

impl Tag {
    /// Returns the tag that the kernel reports for a received frame in `status`, `tpid` and `tci`; `None` if the frame
    /// had no tag.
    pub fn of(status: u32, tpid: u16, tci: u16) -> Option<Self> {
        let has_type = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        (status & libc::TP_STATUS_VLAN_VALID != 0)
            .then_some(Self { tpid: if has_type { tpid } else { ETHERTYPE_VLAN }, tci })
    }
}

/// Returns the frame in `room`. `room` consists of [`VLAN_TAG`] spare bytes and the frame as the kernel delivered it.
/// If there is a tag, the MAC addresses move into the spare bytes, and the tag is inserted after them.
pub fn reinsert(tag: Option<Tag>, room: &mut [u8]) -> &[u8] {
    match tag {
        Some(Tag { tpid, tci }) if room.len() >= VLAN_TAG + MAC_ADDRESSES => {
            room.copy_within(VLAN_TAG..VLAN_TAG + MAC_ADDRESSES, 0);
            room[MAC_ADDRESSES..MAC_ADDRESSES + 2].copy_from_slice(&tpid.to_be_bytes());
            room[MAC_ADDRESSES + 2..MAC_ADDRESSES + 4].copy_from_slice(&tci.to_be_bytes());
            room
        }
        _ => &room[VLAN_TAG..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_goes_behind_the_addresses() {
        let mut room = [0u8; 20];
        for (number, byte) in room[4..].iter_mut().enumerate() {
            *byte = number as u8;
        }
        let untagged = room[4..].to_vec();
        assert_eq!(reinsert(None, &mut room.clone()), untagged);
        let tag = Tag::of(libc::TP_STATUS_VLAN_VALID, 0, 0x2005);
        let mut expected: Vec<u8> = (0..12).collect();
        expected.extend([0x81, 0x00, 0x20, 0x05, 12, 13, 14, 15]);
        assert_eq!(reinsert(tag, &mut room), expected);
    }

    #[test]
    fn without_the_status_bit_there_is_no_tag() {
        assert!(Tag::of(libc::TP_STATUS_VLAN_TPID_VALID, 0x88a8, 7).is_none());
        let status = libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let mut room = [0u8; 16];
        assert_eq!(reinsert(Tag::of(status, 0x88a8, 7), &mut room)[12..], [0x88, 0xa8, 0, 7]);
    }
}
