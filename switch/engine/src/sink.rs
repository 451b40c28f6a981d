//! The interface through which the engine passes frames to the caller's ports.

/// The frames that wait to be sent by a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of waiting frames, which `enq_qdepth` and `deq_qdepth` report.
    pub packets: u32,
    /// The estimated time, in microseconds, for which a frame waits that joins the queue now. `deq_timedelta` reports
    /// this time.
    pub wait_us: u32,
}

/// Receives the frames that the engine sends.
pub trait Sink {
    /// Sends a frame by `port`. The frame is `head` followed by `payload`. Both slices are valid only during the call.
    fn emit(&mut self, port: u32, head: &[u8], payload: &[u8]);

    /// Returns the frames that wait to be sent by `port`, or an empty backlog if the sink has no queue. If the program
    /// reads a queue's depth or delay, the engine calls this method when a packet's egress begins.
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
