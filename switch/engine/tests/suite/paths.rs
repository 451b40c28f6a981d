//! Tests the paths of packets after ingress and after egress: multicast, clones, resubmission, recirculation,
//! truncation and drops.

use crate::common::{Switch, json};
use serde_json::{Value, json};
use sluice_engine::{CloneSession, ControlError, Replica, TraceEvent};

/// The report that a packet of `paths.p4` contains about its path, in the fields of its header.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Trail {
    out: u32,
    passes: u8,
    instance: u8,
    carried: u8,
    rid: u16,
    length: u16,
    port: u16,
}

fn send(s: &mut Switch, what: u8) -> Vec<Trail> {
    let frame = [&[what, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], b"12345"].concat();
    let trail = |(out, f): (u32, Vec<u8>)| {
        assert_eq!(&f[10..], &b"12345"[..f.len() - 10]);
        let n = |i: usize| u16::from_be_bytes([f[i], f[i + 1]]);
        Trail { out, passes: f[1], instance: f[2], carried: f[3], rid: n(4), length: n(6), port: n(8) }
    };
    s.send(0, 3, &frame).into_iter().map(trail).collect()
}

const PLAIN: Trail = Trail { out: 1, passes: 0, instance: 0, carried: 0, rid: 0, length: 15, port: 0xffff };

fn replicas(ports: &[(u32, u16)]) -> Vec<Replica> {
    ports.iter().map(|&(port, instance)| Replica { port, instance }).collect()
}

fn session(ports: &[(u32, u16)], cut: u32) -> CloneSession {
    CloneSession { replicas: replicas(ports), class_of_service: 0, packet_length_bytes: cut }
}

#[test]
fn unicast_drop_and_exit() {
    let mut s = Switch::new("paths");
    assert_eq!(send(&mut s, 0), [PLAIN]);
    assert_eq!(send(&mut s, 4), []);
    assert_eq!(send(&mut s, 11), []);
    assert_eq!(send(&mut s, 5), [], "mark_to_drop clears the multicast group");
    assert_eq!(send(&mut s, 10), [Trail { port: 1, ..PLAIN }], "exit ends ingress; egress runs");
    let d = s.engine.drops();
    assert_eq!((d.received, d.emitted, d.ingress, d.egress), (5, 2, 2, 1));
}

#[test]
fn multicast() {
    let mut s = Switch::new("paths");
    assert_eq!(send(&mut s, 1), []);
    assert_eq!(s.engine.drops().empty_multicast, 1);
    s.engine.multicast_set(5, Some(&replicas(&[(7, 1), (8, 2), (7, 3)]))).unwrap();
    let copy = |out, rid| Trail { out, rid, instance: 5, ..PLAIN };
    assert_eq!(send(&mut s, 1), [copy(7, 1), copy(8, 2), copy(7, 3)]);
    assert_eq!(s.engine.multicast_groups(), [(5, replicas(&[(7, 1), (8, 2), (7, 3)]))]);
    assert!(matches!(s.engine.multicast_set(0, Some(&[])), Err(ControlError::InvalidArgument(_))));
    assert!(matches!(
        s.engine.multicast_set(6, Some(&replicas(&[(1, 1), (1, 1)]))),
        Err(ControlError::InvalidArgument(_))
    ));
    s.engine.multicast_set(5, None).unwrap();
    assert!(matches!(s.engine.multicast_set(5, None), Err(ControlError::NotFound(_))));
    assert_eq!(send(&mut s, 1), []);
}

#[test]
fn ingress_clones_equal_the_packet_as_received() {
    let mut s = Switch::new("paths");
    assert_eq!(send(&mut s, 2).len(), 1);
    assert_eq!(s.engine.drops().unknown_clone_session, 1);
    s.engine.clone_session_set(3, Some(&session(&[(7, 1), (8, 2)], 0))).unwrap();
    // Only the metadata of the field list keeps its values in the clones. The original packet keeps all metadata.
    let copy = |out, rid| Trail { out, rid, instance: 1, carried: 0x22, port: out as u16, ..PLAIN };
    assert_eq!(send(&mut s, 2), [copy(7, 1), copy(8, 2), Trail { passes: 9, carried: 0x33, ..PLAIN }]);
    s.engine.clone_session_set(3, Some(&session(&[(7, 1)], 12))).unwrap();
    let frames = s.send(0, 1, &[2; 15]);
    assert_eq!(
        frames.iter().map(|f| f.1.len()).collect::<Vec<_>>(),
        [12, 15],
        "the session cuts the copy, not the packet"
    );
    assert_eq!(s.engine.clone_sessions(), [(3, session(&[(7, 1)], 12))]);
    s.engine.clone_session_set(3, None).unwrap();
    assert_eq!(send(&mut s, 2).len(), 1);
}

#[test]
fn egress_clones_equal_the_packet_as_sent() {
    let mut s = Switch::new("paths");
    s.engine.clone_session_set(3, Some(&session(&[(9, 4)], 0))).unwrap();
    let original = Trail { passes: 1, carried: 0x66, ..PLAIN };
    assert_eq!(send(&mut s, 8), [original, Trail { out: 9, instance: 2, rid: 4, ..original }]);
}

#[test]
fn resubmission_and_recirculation() {
    let mut s = Switch::new("paths");
    assert_eq!(send(&mut s, 3), [Trail { carried: 0x44, instance: 0, ..PLAIN }]);
    // The packet makes three passes. The field list carries the metadata, and each further pass parses the deparsed
    // headers.
    assert_eq!(send(&mut s, 7), [Trail { passes: 3, carried: 2, ..PLAIN }]);
    assert_eq!(send(&mut s, 6), [], "a packet that is resubmitted without end is dropped");
    assert_eq!(s.engine.drops().too_many_passes, 1);
}

/// Returns two engines with the program `paths`, which `change` has changed. The first is compiled, the second
/// interpreted.
fn changed(change: impl FnOnce(&mut Value)) -> [Switch; 2] {
    let mut program: Value = serde_json::from_slice(&json("paths")).unwrap();
    change(&mut program);
    Switch::both_of(&program)
}

/// Returns the primitives of the first action that contains a primitive named `op`.
fn primitives<'p>(program: &'p mut Value, op: &str) -> &'p mut Vec<Value> {
    let lists = program["actions"].as_array_mut().unwrap().iter_mut().map(|a| a["primitives"].as_array_mut().unwrap());
    lists.into_iter().find(|list| list.iter().any(|p| p["op"] == op)).unwrap()
}

/// A field list that contains the standard metadata must not restore the standard metadata. Older compilers write such
/// a field list for `resubmit(standard_metadata)`.
#[test]
fn a_field_list_does_not_restore_the_standard_metadata() {
    let lists_all = |program: &mut Value| {
        let own = ["instance_type", "packet_length"]
            .map(|field| json!({"type": "field", "value": ["standard_metadata", field]}));
        program["field_lists"][0]["elements"].as_array_mut().unwrap().extend(own);
    };
    for mut s in changed(lists_all) {
        assert_eq!(send(&mut s, 3), [Trail { carried: 0x44, ..PLAIN }]);
        assert_eq!(send(&mut s, 7), [Trail { passes: 3, carried: 2, ..PLAIN }]);
    }
}

#[test]
fn ingress_can_request_recirculation() {
    let recirculate = json!({"op": "recirculate", "parameters": [{"type": "hexstr", "value": "0x1"}]});
    let requests = |program: &mut Value| {
        let resubmits = primitives(program, "resubmit");
        *resubmits.last_mut().unwrap() = recirculate.clone();
        program["actions"][0]["primitives"].as_array_mut().unwrap().push(recirculate);
    };
    for mut s in changed(requests) {
        assert_eq!(send(&mut s, 3), [Trail { passes: 9, carried: 0x44, ..PLAIN }], "a packet to one port");
        s.engine.multicast_set(5, Some(&replicas(&[(7, 1)]))).unwrap();
        let copy = Trail { out: 7, rid: 1, instance: 5, ..PLAIN };
        assert_eq!(send(&mut s, 1), [copy], "copies are not recirculated");
        assert_eq!(send(&mut s, 0), [PLAIN], "nor is the next packet");
    }
}

#[test]
fn the_trace_names_the_reason_of_every_loss() {
    let mut s = Switch::new("paths");
    s.engine.set_trace(true);
    let mut reasons = |what| -> Vec<String> {
        send(&mut s, what);
        let reason = |event| if let TraceEvent::Drop(reason) = event { Some(reason) } else { None };
        s.engine.take_trace().into_iter().filter_map(reason).collect()
    };
    assert_eq!(reasons(0), [""; 0]);
    assert_eq!(reasons(1), ["multicast group 5 has no replicas"]);
    assert_eq!(reasons(2), ["clone session 3 does not exist"]);
    // In p4c's JSON, statements outside of actions have names that consist of file and line.
    assert_eq!(reasons(4), ["drop port 511 at the end of ingress, since action paths48"]);
    assert_eq!(reasons(5), ["drop port 511 at the end of ingress, since action paths50"]);
    assert_eq!(reasons(11), ["drop port 511 at the end of egress, since action paths76"]);
    assert_eq!(reasons(6), ["more than 64 further passes"]);
}

#[test]
fn truncation() {
    let mut s = Switch::new("paths");
    let frames = s.send(0, 1, &[&[9, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], b"12345"].concat());
    assert_eq!(frames.len(), 1);
    assert_eq!(&frames[0].1[10..], b"12");
}

#[test]
fn truncation_applies_to_copies_and_recirculated_packets() {
    let to_group = json!({"op": "assign", "parameters": [
        {"type": "field", "value": ["standard_metadata", "mcast_grp"]}, {"type": "hexstr", "value": "0x0005"},
    ]});
    let truncates_more = |program: &mut Value| {
        let truncate = primitives(program, "truncate")[0].clone();
        primitives(program, "truncate").push(to_group);
        primitives(program, "recirculate").push(truncate);
    };
    for mut s in changed(truncates_more) {
        s.engine.multicast_set(5, Some(&replicas(&[(7, 1), (8, 1)]))).unwrap();
        let lengths = |frames: Vec<(u32, Vec<u8>)>| frames.iter().map(|f| f.1.len()).collect::<Vec<_>>();
        assert_eq!(lengths(s.send(0, 1, &[9; 15])), [12, 12]);
        assert_eq!(lengths(s.send(0, 1, &[&[7, 0][..], &[0; 13]].concat())), [12]);
    }
}
