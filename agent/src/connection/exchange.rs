//! A request and its response, on a connection whose requests the agent reads one by one: the rules decide about each
//! request separately, or may refuse later requests.

use crate::assembler::Assembler;
use crate::policy::{Framing, Progress};
use crate::seq::Seq;

/// The capacity, in bytes, of the buffer for a response, counted from the first byte that has not arrived. A segment
/// that ends beyond it is not forwarded; the server retransmits it.
pub const RESPONSE_ROOM: usize = 256 << 10;

/// The progress of a request and its response.
pub struct Exchange {
    framing: Box<dyn Framing>,
    /// The client's bytes before this sequence number are for the current server.
    pub limit: Seq,
    /// Whether all bytes of the request have arrived.
    pub request_complete: bool,
    /// None until the response is complete. Afterwards, whether the connection can transfer another request.
    pub response_complete: Option<bool>,
    /// Whether the end of the response cannot be found, so that no request may follow the response.
    is_last: bool,
    /// The parts of the response received beyond gaps.
    pub response: Assembler,
}

impl Exchange {
    /// Creates an exchange whose request begins at the client's sequence number `request`, and whose response begins at
    /// the server's sequence number `response`.
    pub fn new(framing: Box<dyn Framing>, request: Seq, response: Seq) -> Exchange {
        let response = Assembler::new(response, RESPONSE_ROOM);
        Exchange { framing, limit: request, request_complete: false, response_complete: None, is_last: false, response }
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub fn memory(&self) -> usize {
        self.response.memory() + self.framing.memory()
    }

    /// Parses the client's bytes from the sequence number `limit` on, and advances `limit` over the bytes that belong
    /// to this request. Returns [`Progress::More`] if there is nothing to parse.
    pub fn parse_request(&mut self, request: &Assembler) -> Progress {
        let new = request.between(self.limit, request.end());
        if self.request_complete || new.is_empty() {
            return Progress::More;
        }
        let progress = self.framing.request(new);
        match &progress {
            Progress::More => self.limit += new.len() as u32,
            Progress::Partial(used) => self.limit += *used as u32,
            Progress::Ended { used, .. } => {
                self.limit += *used as u32;
                self.request_complete = true;
            }
            Progress::Opaque | Progress::Last | Progress::Refused(_) => {}
        }
        progress
    }

    /// Adds bytes of the server to the response. Returns the progress of the response, or `None` if there is no space
    /// for the bytes now.
    pub fn take(&mut self, seq: Seq, bytes: &[u8]) -> Option<Progress> {
        if !self.response.can_take(seq, bytes.len()) {
            return None;
        }
        self.response.insert(seq, bytes);
        let new = self.response.ready();
        let mut progress = Progress::More;
        if self.response_complete.is_none() && !self.is_last && !new.is_empty() {
            progress = self.framing.response(new);
            match progress {
                Progress::Ended { persistent, .. } => self.response_complete = Some(persistent),
                Progress::Last => self.is_last = true,
                _ => {}
            }
        }
        self.response.forget_before(self.response.end());
        Some(progress)
    }

    /// Returns whether the client sends a request although no request may follow the last response. The caller has
    /// checked that the client has acknowledged all bytes of the server. If the response has no known end, only a
    /// request that arrives now (`has_new_data`) shows that the client considers the response complete.
    pub fn requests_after_last(&self, request: &Assembler, has_new_data: bool) -> bool {
        let is_over = self.response_complete == Some(false) || self.is_last && self.request_complete && has_new_data;
        is_over && self.limit.is_before(request.end())
    }
}
