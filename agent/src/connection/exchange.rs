//! One request and its response, on a connection whose every request is decided separately.

use crate::assembler::Assembler;
use crate::policy::{Framing, Progress};
use crate::seq::Seq;

/// Capacity in bytes for parts of a response beyond a gap.
pub const RESPONSE_ROOM: usize = 256 << 10;

/// One request and its response.
pub struct Exchange {
    framing: Box<dyn Framing>,
    /// The client's bytes before this number are for the current server.
    pub limit: Seq,
    /// Whether the request is complete.
    pub request_complete: bool,
    /// None until the response is complete; then, whether the connection can carry another request.
    pub response_complete: Option<bool>,
    /// The end of the response cannot be found, so no request may follow it.
    is_last: bool,
    /// The parts of the response received beyond gaps.
    pub response: Assembler,
}

impl Exchange {
    /// Begins with a request at this number of the client, and its response at this number of the server.
    pub fn new(framing: Box<dyn Framing>, request: Seq, response: Seq) -> Exchange {
        let response = Assembler::new(response, RESPONSE_ROOM);
        Exchange { framing, limit: request, request_complete: false, response_complete: None, is_last: false, response }
    }

    /// Returns the bytes of memory in use besides the structure itself.
    pub fn memory(&self) -> usize {
        self.response.memory() + self.framing.memory()
    }

    /// Parses the bytes of the request that arrived behind the limit.
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

    /// Takes bytes of the server. Returns how far the response has come, or `None` when there is no room for the
    /// bytes now.
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

    /// Whether the client, which has acknowledged everything of the server, sends a request although none may follow.
    /// Behind a response of unknown end, only a request that arrives now shows that the client considers the response
    /// complete.
    pub fn requests_after_last(&self, request: &Assembler, has_new_data: bool) -> bool {
        let is_over = self.response_complete == Some(false) || self.is_last && self.request_complete && has_new_data;
        is_over && self.limit.is_before(request.end())
    }
}
