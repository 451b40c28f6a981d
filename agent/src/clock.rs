//! The agent's clock for timeouts of clients and servers. It stops while the operating system does not run the agent
//! (stopped by a signal, or on a busy machine). Segments that arrived meanwhile are still unread, so the deadlines of
//! their senders must not pass.

/// If more than this number of nanoseconds passes between two readings of the clock, the agent counts as not running in
/// this time. The threshold is above 100 ms, because a running agent reads the clock at least that often. It is below
/// one second, the shortest timeout of a client or server.
const PAUSE_THRESHOLD_NS: u64 = 250_000_000;

/// A clock that counts only the time in which the agent runs.
#[derive(Debug, Default)]
pub struct Clock {
    last: u64,
    paused: u64,
}

impl Clock {
    /// Returns the clock's time at `elapsed`, the real time since the agent's start, and the length of the pause that
    /// ends with this reading (0 if there was no pause). All times are in nanoseconds.
    pub fn read(&mut self, elapsed: u64) -> (u64, u64) {
        let gap = elapsed.saturating_sub(std::mem::replace(&mut self.last, elapsed));
        let pause = if gap > PAUSE_THRESHOLD_NS { gap } else { 0 };
        self.paused += pause;
        (elapsed - self.paused, pause)
    }

    /// Converts a time of the clock to real nanoseconds since the agent's start, with the pauses so far.
    pub fn elapsed_at(&self, time: u64) -> u64 {
        time.saturating_add(self.paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_while_the_agent_does() {
        let (mut clock, second) = (Clock::default(), 1_000_000_000);
        assert_eq!(clock.read(100), (100, 0));
        assert_eq!(clock.read(100 + PAUSE_THRESHOLD_NS), (100 + PAUSE_THRESHOLD_NS, 0));
        assert_eq!(clock.read(5 * second), (100 + PAUSE_THRESHOLD_NS, 5 * second - PAUSE_THRESHOLD_NS - 100));
        assert_eq!(clock.read(5 * second + 7), (107 + PAUSE_THRESHOLD_NS, 0));
        assert_eq!(clock.elapsed_at(107 + PAUSE_THRESHOLD_NS), 5 * second + 7);
        assert_eq!(clock.elapsed_at(u64::MAX), u64::MAX);
    }
}
