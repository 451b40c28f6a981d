//! An agent that was stopped gives up no client or server because of the time in which it did not run.

use sluice_agent::clock::Clock;
use sluice_agent::wire::flags::SYN;

use crate::support::exact::{Exact, GET, MS, RULES, Seen};

const SECONDS: u64 = 1000 * MS;

/// An agent that reads its clock as the program's main loop does.
struct Stopped {
    exact: Exact,
    clock: Clock,
    elapsed: u64,
}

impl Stopped {
    fn new() -> Stopped {
        let mut exact = Exact::new(RULES);
        exact.handshake();
        let (mut clock, elapsed) = (Clock::default(), exact.now);
        clock.read(elapsed);
        Stopped { exact, clock, elapsed }
    }

    /// Returns the outputs while the agent runs, or when it runs again: expired timers are handled before unread
    /// segments.
    fn passes(&mut self, time: u64, is_stopped: bool) -> Vec<Seen> {
        let mut seen = Vec::new();
        let step = if is_stopped { time } else { 100 * MS };
        for _ in 0..time / step {
            self.elapsed += step;
            let (now, pause) = self.clock.read(self.elapsed);
            self.exact.engine.note_pause(pause);
            seen.extend(self.exact.waits((now - self.exact.now) / MS));
        }
        seen
    }
}

#[test]
fn a_request_whose_rest_came_meanwhile_is_served() {
    for is_stopped in [false, true] {
        let mut agent = Stopped::new();
        agent.exact.data(0, &GET[..9]);
        let seen = agent.passes(5 * SECONDS, is_stopped);
        let timed_out = seen.iter().any(|seen| seen.data().starts_with(b"HTTP/1.1 408"));
        assert_eq!(timed_out, !is_stopped, "{seen:?}");
        let seen = agent.exact.data(9, &GET[9..]);
        let asks = seen.iter().any(|seen| matches!(seen, Seen::Server { flags: SYN, .. }));
        assert_eq!(asks, is_stopped, "{seen:?}");
    }
}

#[test]
fn a_server_whose_answer_came_meanwhile_is_not_silent() {
    for is_stopped in [false, true] {
        let mut agent = Stopped::new();
        agent.exact.data(0, GET);
        // All SYNs but the last were sent.
        agent.passes(2 * SECONDS, false);
        agent.passes(5 * SECONDS, is_stopped);
        let seen = agent.exact.opens(0, Some(7));
        assert_eq!(seen.iter().any(|seen| seen.data() == GET), is_stopped, "{seen:?}");
    }
}

#[test]
fn an_order_whose_confirmation_came_meanwhile_has_not_failed() {
    let mut agent = Stopped::new();
    agent.exact.data(0, GET);
    let seen = agent.exact.opens(0, Some(7));
    let order = seen.iter().find_map(|seen| if let Seen::Order(order) = seen { Some(*order) } else { None }).unwrap();
    agent.passes(2 * SECONDS, false);
    agent.passes(60 * SECONDS, true);
    agent.exact.confirms(&order, sluice_agent::order::Status::Applied);
    let counters = &agent.exact.service.counters;
    assert_eq!((counters.spliced.get(), counters.orders_failed.get()), (1, 0));
}

/// The time of cookies, which all agents share, goes on while an agent is stopped.
#[test]
fn cookies_age_while_the_agent_stands_still() {
    let (before, mut other) = (Stopped::new(), Stopped::new());
    let mut agent = Stopped::new();
    agent.passes(1000 * SECONDS, true);
    other.passes(1000 * SECONDS, false);
    other.exact.shake();
    for (cookie, is_good) in [(before.exact.cookie, false), (other.exact.cookie, true)] {
        agent.exact.cookie = cookie;
        let seen = agent.exact.data(0, GET);
        assert_eq!(seen.len(), usize::from(is_good), "{seen:?}");
    }
}
