//! The clock by which the agent judges others: it stands still while the agent itself is not run (stopped by a signal, or on a busy
//! machine). What clients and servers have sent meanwhile is still unread, so their deadlines must not pass.

/// Nanoseconds between two readings above which the agent was not run. Its loop reads the clock every 100 ms at least; the shortest
/// time after which it gives a client or a server up is a second.
const LATE: u64 = 250_000_000;

/// Time in which the agent runs.
#[derive(Debug, Default)]
pub struct Clock {
    last: u64,
    paused: u64,
}

impl Clock {
    /// The time at `elapsed` nanoseconds since the start, and how long the agent was not run before.
    pub fn read(&mut self, elapsed: u64) -> (u64, u64) {
        let gap = elapsed.saturating_sub(std::mem::replace(&mut self.last, elapsed));
        let pause = if gap > LATE { gap } else { 0 };
        self.paused += pause;
        (elapsed - self.paused, pause)
    }

    /// How many nanoseconds after the start this time of the clock is.
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
        assert_eq!(clock.read(100 + LATE), (100 + LATE, 0));
        assert_eq!(clock.read(5 * second), (100 + LATE, 5 * second - LATE - 100));
        assert_eq!(clock.read(5 * second + 7), (107 + LATE, 0));
        assert_eq!(clock.elapsed_at(107 + LATE), 5 * second + 7);
        assert_eq!(clock.elapsed_at(u64::MAX), u64::MAX);
    }
}
