//! A policy for tests, which decides by the letters of the path: the first letter is the group, and the second selects
//! a special behavior.
//!
//! A path `/b...` is assigned to group `b`. The second letter means: `n`, the decision applies to this request only;
//! `c`, it applies to the client's later connections as well; `w`, the policy reads the complete body before it
//! decides; `x`, the request is refused.

use std::net::SocketAddrV4;
use std::time::Duration;

use sluice_agent::policy::{
    Assignment, Disposition, Framing, Progress, Reason, Rejection, RequestReader, ServicePolicy, Sticky,
};

/// The policy, with the number of seconds within which a request must arrive.
#[derive(Debug)]
pub struct Letters(pub u64);

impl ServicePolicy for Letters {
    fn begin(&self, _: SocketAddrV4, _: SocketAddrV4) -> Box<dyn RequestReader> {
        Box::new(Letters(self.0))
    }

    fn greets(&self) -> bool {
        false
    }

    fn room(&self) -> usize {
        80 << 10
    }

    fn wait(&self) -> Duration {
        Duration::from_secs(self.0)
    }

    fn rules(&self) -> usize {
        4
    }

    fn error_reply(&self, reason: Reason, _: &[u8]) -> Vec<u8> {
        let status = match reason {
            Reason::Timeout | Reason::Crowded => 408,
            Reason::CutShort => 400,
            Reason::TooLarge => 413,
            Reason::NoServer | Reason::ServerRefused => 503,
        };
        refusal(status)
    }
}

fn refusal(status: u16) -> Vec<u8> {
    format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}

/// Returns the lengths of a message's head and body in bytes; none until the head is complete.
pub fn lengths(message: &[u8]) -> Option<(usize, usize)> {
    let head = message.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&message[..head]).ok()?;
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    Some((head, length.map_or(0, |length| length.parse().unwrap())))
}

impl RequestReader for Letters {
    fn read(&mut self, bytes: &[u8]) -> Disposition {
        let Some((head, body)) = lengths(bytes) else { return Disposition::NeedMore { reply: Vec::new() } };
        let path = bytes.split(|byte| *byte == b' ').nth(1).unwrap();
        let special = path.get(2).copied().unwrap_or(b' ');
        if special == b'x' {
            return Disposition::Refuse(Rejection { why: "a rule refuses", rule: Some(0), reply: refusal(403) });
        }
        if special == b'w' && bytes.len() < head + body {
            return Disposition::NeedMore { reply: Vec::new() };
        }
        let sticky = match special {
            b'n' => Sticky::None,
            b'c' => Sticky::Client,
            _ => Sticky::Connection,
        };
        let is_single = sticky == Sticky::None;
        let framing = is_single.then(|| Box::new(Lengths::default()) as Box<dyn Framing>);
        Disposition::Assignment(Assignment {
            rule: None,
            group: usize::from(path[1] - b'a'),
            sticky,
            framing,
            dialogue_replay: None,
        })
    }
}

/// Finds the end of requests and responses by `Content-Length`.
#[derive(Default)]
struct Lengths {
    request: Vec<u8>,
    response: Vec<u8>,
}

fn follow(received: &mut Vec<u8>, bytes: &[u8]) -> Progress {
    let before = received.len();
    received.extend_from_slice(bytes);
    match lengths(received) {
        Some((head, body)) if received.len() >= head + body => {
            Progress::Ended { used: head + body - before, persistent: true }
        }
        _ => Progress::More,
    }
}

impl Framing for Lengths {
    fn request(&mut self, bytes: &[u8]) -> Progress {
        follow(&mut self.request, bytes)
    }

    fn response(&mut self, bytes: &[u8]) -> Progress {
        if bytes.starts_with(b"HTTP/1.1 101") {
            return Progress::Opaque;
        }
        follow(&mut self.response, bytes)
    }
}
