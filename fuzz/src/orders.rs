//! Parses arbitrary bytes as splice orders, and as the headers that the data plane adds to frames of guessed
//! connections (connections whose server it has guessed). Parsed values must serialize to the same bytes.

use sluice_agent::facts::{Facts, GUESSED};
use sluice_agent::order::{ORDER, Order, shifted};
use sluice_agent::wire::{ETHERNET, IPV4, Link, ether_type};

const LINK: Link = Link { own: [2; 6], router: [4; 6] };

/// Runs one input, which contains the bytes after the Ethernet header.
pub fn run(data: &[u8]) {
    let frame = |kind: u16| [&LINK.router[..], &LINK.own, &kind.to_be_bytes(), data].concat();
    if let Some(order) = Order::read(&frame(ORDER)) {
        let mut written = Vec::new();
        order.write(&LINK, &mut written);
        assert_eq!(written[ETHERNET..ETHERNET + 23], data[..23], "{order:?}");
        assert_eq!((Order::read(&written), ether_type(&written)), (Some(order), Some(ORDER)));
        windows(data, order.shift);
        windows(data, order.client_shift as i8);
    }
    let guessed = frame(GUESSED);
    if let Some((facts, packet)) = Facts::read(&guessed) {
        let plain = [&guessed[..ETHERNET - 2], &IPV4.to_be_bytes(), packet].concat();
        let written = facts.write(&plain);
        assert_eq!(Facts::read(&written), Some((facts, packet)));
        assert_eq!(written.len(), guessed.len());
    }
}

/// Shifts the 16-bit windows in `data`. Asserts that only a window of 0 becomes 0, and that the order of two windows is
/// never reversed.
fn windows(data: &[u8], shift: i8) {
    let mut windows: Vec<u16> = data.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]])).collect();
    windows.sort_unstable();
    let shifted_windows: Vec<u16> = windows.iter().map(|&window| shifted(window, shift)).collect();
    assert!(shifted_windows.is_sorted());
    assert!(
        windows.iter().zip(&shifted_windows).all(|(window, shifted_windows)| (*window == 0) == (*shifted_windows == 0))
    );
}
