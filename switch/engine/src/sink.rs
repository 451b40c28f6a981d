//! The interface to the caller's ports, by which frames leave.

/// The frames that wait to leave by a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of frames, which `enq_qdepth` and `deq_qdepth` report.
    pub packets: u32,
    /// The estimated wait, in microseconds, of a frame sent now; `deq_timedelta` reports it.
    pub wait_us: u32,
}

/// Receives the frames that leave the engine.
pub trait Sink {
    /// Sends a frame by `port`. The frame is `head` followed by `payload`; both are valid only during the call.
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]);

    /// The frames that wait to leave by `port`; none if the sink has no queue. The engine calls this when a packet's
    /// egress begins, if the program reads a queue's depth or delay.
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
