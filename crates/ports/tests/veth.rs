//! Sends real frames through veth pairs. Each test runs in its own network namespace.
//!
//! The tests need root. Without root, each test prints that it is skipped and passes, because a plain user cannot
//! create interfaces.

use std::process::Command;
use std::time::{Duration, Instant};

use sluice_ports::{Input, Interface, OpenError, Options, Poller, Received, RxBatch, TxBatch};

const INPUTS: [Input; 2] = [Input::Ring, Input::Calls];

/// Runs `test` with the connected interfaces `left` and `right`, which are both up, in a new network namespace.
fn with_veth(test: impl FnOnce() + Send + 'static) {
    // SAFETY: no pointers are involved.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("SKIPPED: packet sockets and namespaces need root");
        return;
    }
    std::thread::spawn(|| {
        // SAFETY: no pointers are involved; only this thread changes its namespace, and its children inherit it.
        let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "unshare: {}", std::io::Error::last_os_error());
        add_pair();
        test();
    })
    .join()
    .expect("the test in the namespace failed");
}

fn add_pair() {
    run("ip link add left type veth peer name right");
    for end in ["left", "right"] {
        run(&format!("sysctl -q -w net.ipv6.conf.{end}.disable_ipv6=1"));
        run(&format!("ip link set {end} up"));
    }
    wait_for_carrier();
}

/// Waits until the kernel has detected the carrier of both interfaces. Before that, the kernel drops their frames.
fn wait_for_carrier() {
    let started = Instant::now();
    while !["left", "right"].iter().all(|end| is_up(end)) {
        assert!(started.elapsed() < Duration::from_secs(60), "no carrier after a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_up(end: &str) -> bool {
    let output = Command::new("ip").args(["-o", "link", "show", end]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).contains(" state UP ")
}

fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().expect(command);
    assert!(status.success(), "{command}: {status}");
}

/// Receives from `interface` until at least `count` frames have arrived, and returns them; panics after a minute.
fn receive(interface: &mut Interface, count: usize) -> Vec<Vec<u8>> {
    let poller = Poller::new().unwrap();
    poller.add(interface.raw_fd().unwrap(), 0).unwrap();
    let (mut events, mut batch, mut frames) = (Vec::new(), RxBatch::default(), Vec::new());
    let deadline = Instant::now() + Duration::from_secs(60);
    while frames.len() < count {
        let remaining = deadline.checked_duration_since(Instant::now());
        let remaining = remaining.unwrap_or_else(|| panic!("{} frames of {count} after a minute", frames.len()));
        // A signal may end the wait early and without events.
        poller.wait(&mut events, Some(remaining)).unwrap();
        assert_eq!(interface.receive(&mut batch), Received::Frames);
        frames.extend(batch.frames().map(<[u8]>::to_vec));
        batch.clear();
    }
    frames
}

fn frame(length: usize, ethertype: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ethertype);
    frame.resize(length, 0x5a);
    frame
}

fn send(interface: &mut Interface, frames: &[Vec<u8>]) {
    let mut batch = TxBatch::default();
    for frame in frames {
        batch.push(&frame[..14], &frame[14..]);
    }
    interface.send(&mut batch);
    assert!(batch.is_empty());
}

fn open(name: &str, input: Input) -> Interface {
    Interface::open_with(name, Options { input, ..Options::default() }).unwrap()
}

#[test]
fn frames_arrive_whole_in_order_and_only_at_the_other_end() {
    for input in INPUTS {
        with_veth(move || {
            let (mut left, mut right) = (open("left", input), open("right", input));
            let frames: Vec<_> = (0..150).map(|n| frame(60 + n * 9, &[0x08, 0x00])).collect();
            send(&mut left, &frames);
            assert_eq!(receive(&mut right, frames.len()), frames);
            let bytes: u64 = frames.iter().map(|frame| frame.len() as u64).sum();
            let (out, into) = (left.counters().snapshot(), right.counters().snapshot());
            assert_eq!((out.tx_packets, out.tx_bytes, out.rx_packets), (150, bytes, 0));
            assert_eq!((into.rx_packets, into.rx_bytes, into.tx_packets), (150, bytes, 0));
            let mut own = RxBatch::default();
            assert_eq!(left.receive(&mut own), Received::Frames);
            assert!(own.is_empty(), "own frames came back");
        });
    }
}

#[test]
fn vlan_tags_are_reinserted() {
    for input in INPUTS {
        with_veth(move || {
            let (mut left, mut right) = (open("left", input), open("right", input));
            let frames = [
                frame(64, &[0x81, 0x00, 0x60, 0x05, 0x08, 0x00]),
                frame(64, &[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x08, 0x08, 0x00]),
                frame(1518, &[0x81, 0x00, 0x00, 0x00, 0x08, 0x00]),
            ];
            send(&mut left, &frames);
            assert_eq!(receive(&mut right, frames.len()), frames);
        });
    }
}

#[test]
fn frames_longer_than_a_slot_keep_their_place_among_the_others() {
    for input in INPUTS {
        with_veth(move || {
            for end in ["left", "right"] {
                run(&format!("ip link set {end} mtu 65535"));
            }
            let (mut left, mut right) = (open("left", input), open("right", input));
            let lengths = [60, 1594, 1595, 1599, 1600, 9000, 64, 65_549, 60, 3000, 3001, 61];
            let mut frames: Vec<_> = lengths.iter().map(|&length| frame(length, &[0x08, 0x00])).collect();
            frames.push(frame(65_553, &[0x81, 0x00, 0x20, 0x07, 0x08, 0x00]));
            frames.push(frame(60, &[0x08, 0x00]));
            send(&mut left, &frames);
            assert_eq!(receive(&mut right, frames.len()), frames);
            assert_eq!(right.counters().snapshot().rx_oversize, 0);
        });
    }
}

#[test]
fn a_ring_wraps_around_and_counts_frames_that_do_not_fit() {
    with_veth(|| {
        let (mut left, mut right) = (open("left", Input::Calls), open("right", Input::Ring));
        assert!(!right.may_have_frames());
        for round in 0..30u32 {
            let frames: Vec<_> = (0..500u32)
                .map(|n| [&frame(60, &[0x08, 0x00])[..14], &(round * 500 + n).to_be_bytes(), &[0; 42]].concat())
                .collect();
            send(&mut left, &frames);
            assert!(right.may_have_frames());
            assert_eq!(receive(&mut right, frames.len()), frames);
        }
        let burst = vec![frame(60, &[0x08, 0x00]); 10_000];
        send(&mut left, &burst);
        let (mut batch, mut count) = (RxBatch::default(), 0);
        while right.may_have_frames() {
            assert_eq!(right.receive(&mut batch), Received::Frames);
            count += batch.len() as u64;
            batch.clear();
        }
        right.update_kernel_drops();
        let drops = right.counters().snapshot().rx_kernel_drops;
        assert!(drops > 0, "{count} frames waited");
        assert_eq!(count + drops, burst.len() as u64);
    });
}

#[test]
fn frames_that_a_shaped_link_refuses_count_as_the_links_loss() {
    with_veth(|| {
        run("tc qdisc add dev left root tbf rate 64kbit burst 1600 limit 8000");
        let mut left = Interface::open("left").unwrap();
        let frames = vec![frame(1000, &[0x08, 0x00]); 100];
        send(&mut left, &frames);
        let counters = left.counters().snapshot();
        assert!(counters.tx_link_drops > 50, "{counters:?}");
        assert_eq!(counters.tx_link_drops + counters.tx_packets, 100, "{counters:?}");
        // A frame that the link lost must not be sent again, because it could be counted twice.
        assert_eq!(counters.tx_link_drops, shaper_drops("left"), "{counters:?}");
    });
}

/// Returns the number of frames that the token bucket filter of the interface `end` has dropped.
fn shaper_drops(end: &str) -> u64 {
    let output = Command::new("tc").args(["-s", "qdisc", "show", "dev", end]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, rest) = text.split_once("dropped ").expect(&text);
    rest.split_once(',').expect(&text).0.parse().expect(&text)
}

#[test]
fn a_frame_refused_before_the_link_has_its_own_reason() {
    with_veth(|| {
        let mut left = Interface::open("left").unwrap();
        let (short, long) = (frame(100, &[0x08, 0x00]), frame(9000, &[0x08, 0x00]));
        send(&mut left, &[short.clone(), long, short.clone()]);
        let counters = left.counters().snapshot();
        assert_eq!((counters.tx_packets, counters.tx_refused, counters.tx_link_drops), (2, 1, 0), "{counters:?}");
    });
}

#[test]
fn refused_and_down_frames_are_counted_separately() {
    for input in INPUTS {
        with_veth(move || refused_and_down(open("left", input)));
    }
}

fn refused_and_down(mut left: Interface) {
    send(&mut left, &[frame(60, &[8, 0]), frame(4000, &[8, 0]), frame(61, &[8, 0])]);
    let counters = left.counters().snapshot();
    assert_eq!((counters.tx_packets, counters.tx_refused), (2, 1), "{counters:?}");
    run("ip link set left down");
    send(&mut left, &[frame(60, &[8, 0])]);
    assert_eq!(left.counters().snapshot().tx_down_drops, 1);
    assert_eq!(left.receive(&mut RxBatch::default()), Received::Down);
    run("ip link set left up");
    wait_for_carrier();
    send(&mut left, &[frame(60, &[8, 0])]);
    assert_eq!(left.counters().snapshot().tx_packets, 3);
}

#[test]
fn an_interface_may_vanish_and_come_back() {
    for input in INPUTS {
        with_veth(move || vanishing(open("left", input)));
    }
}

fn vanishing(mut left: Interface) {
    run("ip link del left");
    let mut batch = RxBatch::default();
    assert_eq!(left.receive(&mut batch), Received::Lost);
    assert!(!left.is_open());
    assert!(matches!(left.reopen(), Err(OpenError::Missing { .. })));
    send(&mut left, &[frame(60, &[8, 0])]);
    assert_eq!(left.counters().snapshot().tx_down_drops, 1);
    add_pair();
    left.reopen().unwrap();
    let mut right = Interface::open("right").unwrap();
    send(&mut right, &[frame(60, &[8, 0])]);
    assert_eq!(receive(&mut left, 1), [frame(60, &[8, 0])]);
}

#[test]
fn frames_received_before_the_interface_went_down_are_delivered() {
    with_veth(|| {
        for end in ["left", "right"] {
            run(&format!("ip link set {end} mtu 9000"));
        }
        let (mut left, mut right) = (open("left", Input::Ring), open("right", Input::Ring));
        let lengths = [60, 3000, 61, 4000];
        let frames: Vec<_> = (0..40).flat_map(|_| lengths.map(|length| frame(length, &[0x08, 0x00]))).collect();
        send(&mut left, &frames);
        run("ip link set right down");
        let (mut batch, mut received, mut down_reports) = (RxBatch::default(), Vec::new(), 0);
        while received.len() < frames.len() {
            down_reports += usize::from(right.receive(&mut batch) == Received::Down);
            assert!(!batch.is_empty(), "{} frames came", received.len());
            received.extend(batch.frames().map(<[u8]>::to_vec));
        }
        assert_eq!((received, down_reports), (frames, 1));
        assert!(right.was_down(), "the interface would not be checked for removal");
        run("ip link set right up");
        wait_for_carrier();
        let later = vec![frame(5000, &[0x08, 0x00])];
        send(&mut left, &later);
        assert_eq!(receive(&mut right, 1), later);
        assert_eq!((right.check(), right.was_down()), (Received::Down, false), "it is up again");
    });
}

#[test]
fn the_error_names_the_interface() {
    let Err(error) = Interface::open("nosuch0") else { panic!("opened nosuch0") };
    assert!(error.to_string().contains("nosuch0"), "{error}");
}

#[test]
fn impossible_names_are_missing_interfaces() {
    with_veth(|| {
        for name in ["left\0", "left-and-more-of-it", "a-name-of-16-byt"] {
            let Err(error) = Interface::open(name) else { panic!("opened {name:?}") };
            assert!(matches!(error, OpenError::Missing { .. }), "{name:?}: {error}");
        }
    });
}
