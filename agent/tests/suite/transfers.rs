//! Tests of clients and servers with real TCP stacks, over links that lose, repeat and reorder packets: every byte
//! arrives at the right host.

use std::collections::HashSet;

use crate::support::world::{Links, Rng, World, request, response, streams};

const PLAIN: &[(usize, usize)] = &[(65_535, 1500), (65_535, 1500), (65_535, 1500)];
const GOOD: Links = Links { lost: 0, repeated: 0, delayed: 0 };

#[test]
fn a_request_in_one_segment() {
    let mut world = World::new(1, GOOD, (65_535, 1500), PLAIN);
    let sent = request("/b100000", 0);
    world.connect(sent.clone(), 10_000);
    let expected = response(&sent, 1);
    world.run(|world| world.clients[0].received.len() >= expected.len());
    assert_eq!(world.clients[0].received, expected);
    assert_eq!(world.switch.orders, 1);
    assert_eq!(world.engine.connections(), 0, "the agent has forgotten it");
    // The agent has received four packets: the client's SYN, the ACK of the handshake, the request, and the server's
    // SYN-ACK.
    assert_eq!(world.at_agent, 4);
    assert_eq!(world.engine.memory(), 0);
}

#[test]
fn a_long_request_that_rules_read_completely() {
    let mut world = World::new(2, GOOD, (65_535, 1500), PLAIN);
    let sent = request("/cw5000", 60_000);
    world.connect(sent.clone(), 100_000);
    let expected = response(&sent, 2);
    world.run(|world| world.clients[0].received.len() >= expected.len());
    assert_eq!(world.clients[0].received, expected);
    assert_eq!(streams(&world), [(2, sent)].into());
    assert_eq!((world.switch.orders, world.engine.connections()), (1, 0));
}

/// Runs a connection with a single request over links that lose, repeat and delay packets.
fn transfer(seed: u64) {
    let mut rng = Rng(seed);
    let links = Links { lost: rng.below(4), repeated: rng.below(5), delayed: rng.below(10) };
    let build = |rng: &mut Rng, buffer: [usize; 3]| (buffer[rng.below(3) as usize], 1500 - 40 * rng.below(12) as usize);
    let client = build(&mut rng, [4096, 30_000, 400_000]);
    // A server's window is at least the window that the agent first offers to clients, because smoltcp waits forever if
    // a window shrinks.
    let servers = [(); 3].map(|()| build(&mut rng, [65_535, 100_000, 2_000_000]));
    let mut world = World::new(seed, links, client, &servers);
    let group = rng.below(3) as usize;
    let special = ["", "w", "c", "n", "wq"][rng.below(5) as usize];
    let body = [0, 10, 3000, 50_000, 300_000][rng.below(if special.contains('w') { 4 } else { 5 }) as usize];
    let path = format!("/{}{special}{}", (b'a' + group as u8) as char, [10, 5000, 200_000][rng.below(3) as usize]);
    let sent = request(&path, body);
    let piece = [1 + rng.below(100) as usize, 1000, 100_000][rng.below(3) as usize].max(sent.len() / 200);
    let client = world.connect(sent.clone(), piece);
    world.clients[client].ends = rng.percent(30);
    let expected = response(&sent, group);
    world.run(|world| world.clients[0].received.len() >= expected.len() || world.clients[0].was_reset);
    let state = world.socket(client).state();
    let received = &world.clients[0].received;
    assert!(
        *received == expected,
        "seed {seed}: {path}, {body} bytes: got {} of {} bytes of the answer by {} ms, {state}",
        received.len(),
        expected.len(),
        world.now / 1_000_000,
    );
    assert!(streams(&world) == [(group, sent)].into(), "seed {seed}: what servers got");
}

#[test]
fn every_byte_arrives_where_it_is_meant_to() {
    (0..100).for_each(transfer);
}

/// Runs a connection with 20 requests, each for a random group. The client sends each request after the response to the
/// previous one or, if `is_pipelined`, all requests at once.
fn exchange(seed: u64, is_pipelined: bool) {
    let mut rng = Rng(seed);
    let links = Links { lost: rng.below(3), repeated: rng.below(5), delayed: rng.below(10) };
    let servers = [(65_535, 1500), (100_000, 1400), (2_000_000, 1460)];
    let mut world = World::new(seed, links, (30_000, 1500), &servers);
    let mut requests = Vec::new();
    let mut expected = Vec::new();
    for n in 0..20 {
        let group = rng.below(3) as usize;
        let path = format!("/{}n{}", (b'a' + group as u8) as char, [10, 2000, 40_000][rng.below(3) as usize] + n);
        let sent = request(&path, [0, 10, 3000][rng.below(3) as usize]);
        expected.extend(response(&sent, group));
        requests.push((group, sent));
    }
    world.connect(Vec::new(), 100_000);
    let mut due = 0;
    for (group, sent) in &requests {
        world.clients[0].to_send.extend(sent);
        due += response(sent, *group).len();
        if !is_pipelined {
            world.run(|world| world.clients[0].received.len() >= due);
        }
    }
    world.run(|world| world.clients[0].received.len() >= due);
    assert!(world.clients[0].received == expected, "seed {seed}: {} of {due}", world.clients[0].received.len());
    // Successive requests for the same group share a connection.
    let mut expected_streams = HashSet::new();
    for run in requests.chunk_by(|a, b| a.0 == b.0) {
        expected_streams.insert((run[0].0, run.iter().flat_map(|(_, sent)| sent.clone()).collect::<Vec<u8>>()));
    }
    assert!(streams(&world) == expected_streams, "seed {seed}: what servers got");
}

#[test]
fn each_request_of_a_connection_has_its_own_group() {
    (0..10).for_each(|seed| exchange(seed, false));
}

#[test]
fn two_gets_for_different_groups_in_one_segment() {
    (0..10).for_each(|seed| exchange(seed, true));
}
