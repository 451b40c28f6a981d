//! Tests the queueing metadata that egress reads: the backlog of the queues at the switch's ports.

use crate::common::{MS, Switch};
use sluice_engine::{Backlog, CloneSession, Replica, Sink};

/// A sink that reports N waiting packets for every port N, and that records the ports for which the backlog is queried.
#[derive(Default)]
struct Queues {
    out: Vec<(u32, Vec<u8>)>,
    queried: Vec<u32>,
}

impl Sink for Queues {
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]) {
        self.out.push((port, [head, payload].concat()));
    }

    fn backlog(&mut self, port: u32) -> Backlog {
        self.queried.push(port);
        Backlog { packets: port, wait_us: 1000 * port }
    }
}

/// Builds a frame of this kind for this port. Egress will overwrite the bytes 0xff with the backlog.
fn input(kind: u8, port: u8) -> Vec<u8> {
    [&[kind, port][..], &[0xff; 14], b"payload"].concat()
}

/// Returns the expected frame with its port. The frame contains the backlog that egress has written.
fn output(kind: u8, to: u8, port: u32, micros: u32) -> (u32, Vec<u8>) {
    let depth = port.to_be_bytes();
    let (time, wait) = (micros.to_be_bytes(), (1000 * port).to_be_bytes());
    (port, [&[kind, to][..], &time, &depth[1..], &wait, &depth[1..], b"payload"].concat())
}

#[test]
fn packets_have_the_backlog_of_their_egress_port() {
    for mut s in Switch::both("queues") {
        let replica = |port| Replica { port, instance: 1 };
        s.engine.multicast_set(1, Some(&[replica(3), replica(4)])).unwrap();
        let session = CloneSession { replicas: vec![replica(5)], class_of_service: 0, packet_length_bytes: 0 };
        s.engine.clone_session_set(1, Some(&session)).unwrap();
        for (kind, port, expected, queried) in [
            (0, 7, vec![output(0, 7, 7, 9000)], vec![7]),
            (1, 7, vec![output(1, 7, 3, 9000), output(1, 7, 4, 9000)], vec![3, 4]),
            (2, 7, vec![output(2, 7, 5, 9000), output(2, 7, 7, 9000)], vec![5, 7]),
            (3, 7, vec![], vec![]),
            (4, 7, vec![output(0, 8, 8, 9000)], vec![7, 8]),
        ] {
            let mut queues = Queues::default();
            s.engine.receive(9 * MS, 1, &input(kind, port), &mut queues);
            assert_eq!(queues.out, expected, "kind {kind}");
            assert_eq!(queues.queried, queried, "kind {kind}");
        }
        // A sink without queues reports an empty backlog.
        assert_eq!(s.send(9 * MS, 1, &input(0, 7))[0].1[6..16], [0; 10]);
    }
}

#[test]
fn the_backlog_is_queried_only_for_a_program_that_reads_it() {
    for name in ["tables", "paths", "arrays", "deparser", "statements"] {
        let mut s = Switch::new(name);
        let mut queues = Queues::default();
        for number in 0..100u8 {
            s.engine.receive(0, 1, &[number; 64], &mut queues);
        }
        assert!(s.engine.compiled().is_err() || queues.queried.is_empty(), "{name} queries the backlog");
    }
}
