//! Tests of clients' second connections, for which the data plane guesses the server, between real TCP stacks. Every
//! byte arrives at the right server or client, whether the guess is right or wrong.

use crate::support::world::{Links, Rng, World, request, response, streams};

const PLAIN: &[(usize, usize)] = &[(65_535, 1500), (65_535, 1500), (65_535, 1500)];
const GOOD: Links = Links { lost: 0, repeated: 0, delayed: 0 };

/// Sends a request on a new connection, `piece` bytes at once; checks that a server of the group `group` answers; and
/// closes the connection.
fn send_request(world: &mut World, sent: &[u8], group: usize, piece: usize) {
    let expected = response(sent, group);
    let client = loop {
        let client = world.connect(sent.to_vec(), piece);
        let is_refused = |world: &World| world.clients[client].received.starts_with(b"HTTP/1.1 503");
        let is_done = |world: &World| world.clients[client].received.len() >= expected.len();
        world.run(|world| is_done(world) || is_refused(world) || world.clients[client].was_reset);
        // If links lose packets, the agent may refuse a request because a server seems not to answer.
        if !is_refused(world) || world.links.lost == 0 {
            break client;
        }
    };
    let received = &world.clients[client].received;
    let (request_text, guesses) = (String::from_utf8_lossy(&sent[..16]), guesses(world));
    assert!(*received == expected, "{request_text}: got {} of {} bytes; {guesses:?}", received.len(), expected.len());
    world.socket(client).close();
    world.run_for(3_000_000_000, |_| false);
}

fn guesses(world: &World) -> [u64; 3] {
    let counters = &world.service.counters;
    [&counters.guesses_right, &counters.guesses_wrong, &counters.guesses_reset].map(|counter| counter.get())
}

#[test]
fn a_hit_costs_one_packet_of_the_agents() {
    let mut world = World::new(1, GOOD, (65_535, 1500), PLAIN);
    let sent = request("/b100000", 0);
    send_request(&mut world, &sent, 1, 10_000);
    let before = world.at_agent;
    send_request(&mut world, &sent, 1, 10_000);
    assert_eq!((guesses(&world), world.at_agent - before), ([1, 0, 0], 1));
    assert_eq!((world.engine.connections(), world.engine.memory()), (0, 0));
}

#[test]
fn a_miss_costs_the_wrong_server_no_byte() {
    let mut world = World::new(2, GOOD, (65_535, 1500), PLAIN);
    let (first, second) = (request("/b100", 0), request("/c100000", 0));
    send_request(&mut world, &first, 1, 10_000);
    send_request(&mut world, &second, 2, 10_000);
    send_request(&mut world, &second, 2, 10_000);
    assert_eq!(guesses(&world), [1, 1, 0]);
    assert_eq!(streams(&world), [(1, first), (2, second)].into());
}

#[test]
fn a_client_bound_to_a_server_passes_no_agent() {
    let mut world = World::new(3, GOOD, (65_535, 1500), PLAIN);
    let sent = request("/bc5000", 100);
    send_request(&mut world, &sent, 1, 10_000);
    let before = world.at_agent;
    send_request(&mut world, &sent, 1, 10_000);
    assert_eq!((world.at_agent, guesses(&world)), (before, [0, 0, 0]));
}

#[test]
fn another_agent_continues_a_guess() {
    let mut world = World::new(4, GOOD, (65_535, 1500), PLAIN);
    let sent = request("/b100", 200);
    send_request(&mut world, &sent, 1, 10_000);
    // The agent is replaced after it has received the first part of a request, which it has not acknowledged.
    let client = world.connect(sent.clone(), 30);
    let arrived = world.at_agent + 1;
    world.run(|world| world.at_agent == arrived);
    world.replace_agent();
    let expected = response(&sent, 1);
    world.run(|world| world.clients[client].received.len() >= expected.len());
    assert_eq!(world.clients[client].received, expected);
}

/// Runs four connections of a client over links that lose, repeat and delay packets. Returns the numbers of right and
/// wrong guesses, and of guesses that ended with a reset.
fn transfers(seed: u64) -> [u64; 3] {
    let mut rng = Rng(seed);
    let links = Links { lost: rng.below(4), repeated: rng.below(5), delayed: rng.below(10) };
    let build = |rng: &mut Rng, buffer: [usize; 3]| (buffer[rng.below(3) as usize], 1500 - 40 * rng.below(3) as usize);
    let client = build(&mut rng, [30_000, 65_535, 400_000]);
    let servers = [(); 3].map(|()| build(&mut rng, [65_535, 100_000, 2_000_000]));
    let mut world = World::new(seed, links, client, &servers);
    let mut expected_streams = std::collections::HashSet::new();
    for _ in 0..4 {
        let group = rng.below(2) as usize;
        let special = ["", "", "w", "n", "nw"][rng.below(5) as usize];
        let body = [0, 10, 3000, 20_000][rng.below(4) as usize];
        let path = format!("/{}{special}{}", (b'a' + group as u8) as char, [10, 5000, 100_000][rng.below(3) as usize]);
        let sent = request(&path, body);
        let piece = [100, 1000, 100_000][rng.below(3) as usize].max(sent.len() / 200);
        send_request(&mut world, &sent, group, piece);
        expected_streams.insert((group, sent));
    }
    assert!(streams(&world) == expected_streams, "seed {seed}: what servers got");
    guesses(&world)
}

#[test]
fn every_byte_arrives_where_it_is_meant_to() {
    let all = (0..60).map(transfers).fold([0; 3], |sum, counts| std::array::from_fn(|n| sum[n] + counts[n]));
    assert!(all[0] > 20 && all[1] > 20 && all[2] == 0, "{all:?}");
}
