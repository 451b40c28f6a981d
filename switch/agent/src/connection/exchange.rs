//! A request and its response, of a connection whose every request is decided anew.

use crate::assembler::Assembler;
use crate::decider::{Framing, Progress};
use crate::seq::Seq;

/// Bytes of a response that may come beyond a gap.
pub const RESPONSE_ROOM: usize = 256 << 10;

/// A request and its response.
pub struct Exchange {
    framing: Box<dyn Framing>,
    /// The client's bytes before this number are meant for this server.
    pub limit: Seq,
    /// The request is complete.
    pub is_asked: bool,
    /// The response is complete, and whether the connection goes on behind it.
    pub answered: Option<bool>,
    /// Where the response ends is not known; no request may follow it.
    is_last: bool,
    /// What came of the response beyond gaps.
    pub response: Assembler,
}

impl Exchange {
    /// Begins with a request at this number of the client's, and its response at this one of the server's.
    pub fn new(framing: Box<dyn Framing>, request: Seq, response: Seq) -> Exchange {
        let response = Assembler::new(response, RESPONSE_ROOM);
        Exchange { framing, limit: request, is_asked: false, answered: None, is_last: false, response }
    }

    /// Memory taken beside the structure itself.
    pub fn memory(&self) -> usize {
        self.response.memory() + self.framing.memory()
    }

    /// Looks at what has come of the request behind the limit.
    pub fn follow_request(&mut self, request: &Assembler) -> Progress {
        let new = request.between(self.limit, request.end());
        if self.is_asked || new.is_empty() {
            return Progress::More;
        }
        let progress = self.framing.request(new);
        match &progress {
            Progress::More => self.limit += new.len() as u32,
            Progress::Part(used) => self.limit += *used as u32,
            Progress::Ended { used, .. } => {
                self.limit += *used as u32;
                self.is_asked = true;
            }
            Progress::Opaque | Progress::Last | Progress::Refused(_) => {}
        }
        progress
    }

    /// Takes bytes of the server: what comes of the response, or `None` when there is no room for them now.
    pub fn take(&mut self, seq: Seq, bytes: &[u8]) -> Option<Progress> {
        if !self.response.can_take(seq, bytes.len()) {
            return None;
        }
        self.response.insert(seq, bytes);
        let new = self.response.ready();
        let mut progress = Progress::More;
        if self.answered.is_none() && !self.is_last && !new.is_empty() {
            progress = self.framing.response(new);
            match progress {
                Progress::Ended { goes_on, .. } => self.answered = Some(goes_on),
                Progress::Last => self.is_last = true,
                _ => {}
            }
        }
        self.response.forget_before(self.response.end());
        Some(progress)
    }

    /// Whether the client, which has all that the server has sent, asks for more although nothing more may follow. Of a response
    /// without an end only a request that comes now shows that the client takes it for complete.
    pub fn asks_too_much(&self, request: &Assembler, has_come: bool) -> bool {
        let is_over = self.answered == Some(false) || self.is_last && self.is_asked && has_come;
        is_over && self.limit.is_before(request.end())
    }
}
