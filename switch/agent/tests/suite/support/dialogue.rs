//! A dialogue with a mail server through the agent, with all that each side has sent and received.

use sluice_agent::order::Order;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, SYN};

use super::exact::{Exact, ISN, Seen};

/// A client and a server, and how many bytes each has sent and received.
pub struct Talk {
    pub exact: Exact,
    /// Bytes that the client has sent, and the bytes that it has received.
    pub sent: u32,
    pub received: Vec<u8>,
    /// Bytes that the server has sent; the bytes that it has received, and its initial number of the client.
    pub answered: u32,
    pub handed: Vec<u8>,
    pub base: Seq,
    pub order: Option<Order>,
    pub is_closed: bool,
}

impl Talk {
    /// Creates a client that has completed its handshake.
    pub fn new(content: &str) -> Talk {
        let mut exact = Exact::new(content);
        let (options, length) = exact.offer.write();
        let seen = exact.syn(&options[..length], b"");
        let [Seen::Client { seq, .. }] = seen[..] else { panic!("{seen:?}") };
        exact.cookie = seq;
        let (received, handed) = (Vec::new(), Vec::new());
        let mut talk = Talk { exact, sent: 0, received, answered: 0, handed, base: ISN, order: None, is_closed: false };
        talk.client_acknowledges();
        talk.client_acknowledges();
        talk
    }

    pub fn look(&mut self, seen: &[Seen]) {
        for seen in seen {
            match seen {
                // Behind the FIN, only ACKs follow.
                Seen::Client { data, .. } if self.is_closed && data.is_empty() => {}
                Seen::Client { seq, data, flags, .. } => {
                    let at = (*seq - (self.exact.cookie + 1)) as usize;
                    self.received.truncate(at);
                    assert_eq!(self.received.len(), at, "a gap: {seen:?}");
                    self.received.extend(data);
                    self.is_closed |= flags & FIN != 0;
                }
                Seen::Server { seq, flags, .. } if flags & SYN != 0 => (self.base, self.answered) = (*seq, 0),
                Seen::Server { seq, data, .. } => {
                    let at = (*seq - (self.base + 1)) as usize;
                    self.handed.truncate(at.min(self.handed.len()));
                    self.handed.extend(data);
                }
                Seen::Order(order) => self.order = Some(*order),
            }
        }
    }

    pub fn client_acknowledges(&mut self) -> Vec<Seen> {
        let seen = self.exact.client(self.sent, self.received.len() as u32, ACK, b"");
        self.look(&seen);
        seen
    }

    /// The client sends this, and acknowledges the reply.
    pub fn sends(&mut self, text: &str) -> Vec<Seen> {
        let mut seen = self.exact.client(self.sent, self.received.len() as u32, ACK | PSH, text.as_bytes());
        self.look(&seen);
        self.sent += text.len() as u32;
        seen.extend(self.client_acknowledges());
        seen
    }

    /// Returns what the client receives in reply to this.
    pub fn replies_to(&mut self, text: &str) -> String {
        let before = self.received.len();
        self.sends(text);
        String::from_utf8(self.received[before..].to_vec()).unwrap()
    }

    /// The server accepts the connection.
    pub fn opens(&mut self) {
        let seen = self.exact.opens((self.base - ISN) as u32, Some(7));
        self.look(&seen);
    }

    /// The server sends this, and acknowledges all that it has received.
    pub fn server(&mut self, flags: u8, text: &str) -> Vec<Seen> {
        let has = (self.base - ISN) as u32 + self.handed.len() as u32;
        let seen = self.exact.server(self.answered, has, flags, text.as_bytes());
        self.answered += text.len() as u32;
        self.look(&seen);
        seen
    }

    pub fn answers(&mut self, text: &str) -> Vec<Seen> {
        self.server(ACK | PSH, text)
    }

    pub fn handed(&self) -> &str {
        std::str::from_utf8(&self.handed).unwrap()
    }

    /// Returns what the client has received behind the first `at` bytes.
    pub fn received_after(&self, at: usize) -> &str {
        std::str::from_utf8(&self.received[at..]).unwrap()
    }
}
