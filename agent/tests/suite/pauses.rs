//! Tests of an agent that the operating system stops for some time: no timeout of a client or server expires because of
//! the pause.

use sluice_agent::clock::Clock;
use sluice_agent::wire::flags::SYN;

use crate::support::harness::{GET, Harness, MS, Output, RULES};

const SECONDS: u64 = 1000 * MS;

/// An agent that reads its clock in the same way as the main loop of the program, and that can be stopped.
struct Stopped {
    harness: Harness,
    clock: Clock,
    elapsed: u64,
}

impl Stopped {
    fn new() -> Stopped {
        let mut harness = Harness::new(RULES);
        harness.handshake();
        let (mut clock, elapsed) = (Clock::default(), harness.now);
        clock.read(elapsed);
        Stopped { harness, clock, elapsed }
    }

    /// Lets `time` nanoseconds pass while the agent runs or is stopped, and returns its outputs. An agent that runs
    /// again processes expired timers before unread segments.
    fn run(&mut self, time: u64, is_stopped: bool) -> Vec<Output> {
        let mut outputs = Vec::new();
        let step = if is_stopped { time } else { 100 * MS };
        for _ in 0..time / step {
            self.elapsed += step;
            let (now, pause) = self.clock.read(self.elapsed);
            self.harness.engine.note_pause(pause);
            outputs.extend(self.harness.waits((now - self.harness.now) / MS));
        }
        outputs
    }
}

#[test]
fn a_request_completed_during_the_pause_is_served() {
    for is_stopped in [false, true] {
        let mut agent = Stopped::new();
        agent.harness.data(0, &GET[..9]);
        let outputs = agent.run(5 * SECONDS, is_stopped);
        let timed_out = outputs.iter().any(|output| output.data().starts_with(b"HTTP/1.1 408"));
        assert_eq!(timed_out, !is_stopped, "{outputs:?}");
        let outputs = agent.harness.data(9, &GET[9..]);
        let sends_syn = outputs.iter().any(|output| matches!(output, Output::Server { flags: SYN, .. }));
        assert_eq!(sends_syn, is_stopped, "{outputs:?}");
    }
}

#[test]
fn a_server_that_answered_during_the_pause_is_not_given_up() {
    for is_stopped in [false, true] {
        let mut agent = Stopped::new();
        agent.harness.data(0, GET);
        // Within 2 s, the agent has sent all its SYNs. It waits for an answer to the last one until 3.75 s.
        agent.run(2 * SECONDS, false);
        agent.run(5 * SECONDS, is_stopped);
        let outputs = agent.harness.opens(0, Some(7));
        assert_eq!(outputs.iter().any(|output| output.data() == GET), is_stopped, "{outputs:?}");
    }
}

#[test]
fn an_order_confirmed_during_the_pause_has_not_failed() {
    let mut agent = Stopped::new();
    agent.harness.data(0, GET);
    let outputs = agent.harness.opens(0, Some(7));
    let order =
        outputs.iter().find_map(|output| if let Output::Order(order) = output { Some(*order) } else { None }).unwrap();
    agent.run(2 * SECONDS, false);
    agent.run(60 * SECONDS, true);
    agent.harness.confirms(&order, sluice_agent::order::Status::Applied);
    let counters = &agent.harness.service.counters;
    assert_eq!((counters.spliced.get(), counters.orders_failed.get()), (1, 0));
}

/// The time in cookies, which all agents share, continues while an agent is stopped.
#[test]
fn cookies_age_while_the_agent_stands_still() {
    let (before, mut other) = (Stopped::new(), Stopped::new());
    let mut agent = Stopped::new();
    agent.run(1000 * SECONDS, true);
    other.run(1000 * SECONDS, false);
    other.harness.shake();
    for (cookie, is_good) in [(before.harness.cookie, false), (other.harness.cookie, true)] {
        agent.harness.cookie = cookie;
        let outputs = agent.harness.data(0, GET);
        assert_eq!(outputs.len(), usize::from(is_good), "{outputs:?}");
    }
}
