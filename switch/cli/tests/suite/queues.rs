//! Tests the queueing metadata of packets on a link whose rate `tc` limits.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::binary::{Host, in_namespace, run};
use crate::common::{Switch, capture};

/// A program that writes the queueing metadata of egress into the frame. The second byte of a frame is its egress port.
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/p4/queues.json");

/// Waits until a capture contains at least `count` frames. Returns the fields `enq_qdepth`, `deq_timedelta` and
/// `deq_qdepth` of each frame.
fn queueing(path: &Path, count: usize) -> Vec<(u32, u32, u32)> {
    let started = Instant::now();
    let frames = loop {
        match capture(path) {
            Ok(frames) if frames.len() >= count => break frames,
            read => assert!(started.elapsed() < Duration::from_secs(60), "after a minute: {read:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
    frames.iter().map(|frame| (number(&frame[6..9]), number(&frame[9..13]), number(&frame[13..16]))).collect()
}

#[test]
fn packets_carry_the_backlog_of_a_shaped_link() {
    in_namespace(|| {
        let directory = tempfile::tempdir().unwrap();
        // At this rate a frame of 1,000 bytes needs a second. The burst allows two frames at once.
        run("tc qdisc add dev s2 root tbf rate 8kbit burst 2kb limit 100kb");
        let flags = format!(
            "{PROGRAM} -i 1@s1 -i 2@s2 --pcap={} -- --grpc-server-addr 127.0.0.1:0",
            directory.path().display()
        );
        let switch = Switch::start(&flags);
        let mut left = Host::open("h1");
        for port in [1, 2] {
            for _ in 0..20 {
                left.send(&[[&[0, port][..], &[0; 998]].concat()]);
                // The pause is longer than a millisecond, the time for which the switch uses a reply of the kernel.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        assert_eq!(queueing(&directory.path().join("s1_out.pcap"), 20), [(0, 0, 0); 20]);
        let shaped = queueing(&directory.path().join("s2_out.pcap"), 20);
        assert!(shaped.iter().all(|(enqueued, _, dequeued)| enqueued == dequeued && *enqueued < 20), "{shaped:?}");
        assert!(shaped[0] == (0, 0, 0) && shaped[19].0 > 8, "{shaped:?}");
        switch.stop(libc::SIGTERM);
    });
}
