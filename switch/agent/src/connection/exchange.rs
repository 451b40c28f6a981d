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
    /// What came of the response beyond gaps.
    pub response: Assembler,
}

impl Exchange {
    /// Begins with a request at this number of the client's, and its response at this one of the server's.
    pub fn new(framing: Box<dyn Framing>, request: Seq, response: Seq) -> Exchange {
        let response = Assembler::new(response, RESPONSE_ROOM);
        Exchange { framing, limit: request, is_asked: false, answered: None, response }
    }

    /// Looks at what has come of the request behind the limit.
    pub fn follow_request(&mut self, request: &Assembler) -> Progress {
        let new = request.between(self.limit, request.end());
        if self.is_asked || new.is_empty() {
            return Progress::More;
        }
        let progress = self.framing.request(new);
        match progress {
            Progress::More => self.limit += new.len() as u32,
            Progress::Ended { used, .. } => {
                self.limit += used as u32;
                self.is_asked = true;
            }
            // Nothing more of it is handed on; the server waits, and gives up.
            Progress::Broken => self.is_asked = true,
            Progress::Opaque => {}
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
        if self.answered.is_none() && !new.is_empty() {
            progress = self.framing.response(new);
            if let Progress::Ended { goes_on, .. } = progress {
                self.answered = Some(goes_on);
            }
        }
        self.response.forget_before(self.response.end());
        Some(progress)
    }
}
