//! Where frames leave: the ports, as the caller has them.

/// What waits to leave by a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets: `enq_qdepth` and `deq_qdepth`.
    pub packets: u32,
    /// Microseconds that one that is sent now waits, as far as is known: `deq_timedelta`.
    pub wait_us: u32,
}

/// Takes the frames that leave.
pub trait Sink {
    /// A frame leaves by `port`; it is `head` followed by `payload`. Both are valid only during the call.
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]);

    /// The frames that wait to leave by `port`; none where the sink has no queue. The engine asks when a packet's egress begins, if the
    /// program reads a queue's depth or delay.
    fn backlog(&mut self, port: u32) -> Backlog {
        let _ = port;
        Backlog::default()
    }
}

impl Sink for Vec<(u32, Vec<u8>)> {
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]) {
        self.push((port, [head, payload].concat()));
    }
}
