//! A mail dialogue between a client and a server through the agent, with the bytes that client and server have sent and
//! received.

use sluice_agent::order::Order;
use sluice_agent::seq::Seq;
use sluice_agent::wire::flags::{ACK, FIN, PSH, SYN};

use super::harness::{Harness, ISN, Output};

/// A client and a server, and the bytes that each has sent and received.
pub struct Conversation {
    pub harness: Harness,
    /// The number of bytes that the client has sent.
    pub sent: u32,
    /// The bytes that the client has received.
    pub received: Vec<u8>,
    /// The number of bytes that the server has sent.
    pub answered: u32,
    /// The bytes that the server has received.
    pub forwarded: Vec<u8>,
    /// The sequence number of the agent's SYN to the server.
    pub base: Seq,
    pub order: Option<Order>,
    pub is_closed: bool,
}

impl Conversation {
    /// Creates a conversation whose client has completed its handshake. `content` contains the rules.
    pub fn new(content: &str) -> Conversation {
        let mut harness = Harness::new(content);
        let (options, length) = harness.syn_options.write();
        let outputs = harness.syn(&options[..length], b"");
        let [Output::Client { seq, .. }] = outputs[..] else { panic!("{outputs:?}") };
        harness.cookie = seq;
        let (received, forwarded) = (Vec::new(), Vec::new());
        let mut conversation = Conversation {
            harness,
            sent: 0,
            received,
            answered: 0,
            forwarded,
            base: ISN,
            order: None,
            is_closed: false,
        };
        conversation.client_acknowledges();
        conversation.client_acknowledges();
        conversation
    }

    pub fn record(&mut self, outputs: &[Output]) {
        for output in outputs {
            match output {
                // After the agent's FIN, only ACKs follow.
                Output::Client { data, .. } if self.is_closed && data.is_empty() => {}
                Output::Client { seq, data, flags, .. } => {
                    let at = (*seq - (self.harness.cookie + 1)) as usize;
                    self.received.truncate(at);
                    assert_eq!(self.received.len(), at, "a gap: {outputs:?}");
                    self.received.extend(data);
                    self.is_closed |= flags & FIN != 0;
                }
                Output::Server { seq, flags, .. } if flags & SYN != 0 => (self.base, self.answered) = (*seq, 0),
                Output::Server { seq, data, .. } => {
                    let at = (*seq - (self.base + 1)) as usize;
                    self.forwarded.truncate(at.min(self.forwarded.len()));
                    self.forwarded.extend(data);
                }
                Output::Order(order) => self.order = Some(*order),
            }
        }
    }

    pub fn client_acknowledges(&mut self) -> Vec<Output> {
        let outputs = self.harness.client(self.sent, self.received.len() as u32, ACK, b"");
        self.record(&outputs);
        outputs
    }

    /// Lets the client send `text` and acknowledge the reply.
    pub fn sends(&mut self, text: &str) -> Vec<Output> {
        let mut outputs = self.harness.client(self.sent, self.received.len() as u32, ACK | PSH, text.as_bytes());
        self.record(&outputs);
        self.sent += text.len() as u32;
        outputs.extend(self.client_acknowledges());
        outputs
    }

    /// Lets the client send `text`, and returns the bytes that the client receives in reply.
    pub fn replies_to(&mut self, text: &str) -> String {
        let before = self.received.len();
        self.sends(text);
        String::from_utf8(self.received[before..].to_vec()).unwrap()
    }

    /// Lets the server accept the connection.
    pub fn opens(&mut self) {
        let outputs = self.harness.opens((self.base - ISN) as u32, Some(7));
        self.record(&outputs);
    }

    /// Lets the server send `text` and acknowledge all bytes that it has received.
    pub fn server(&mut self, flags: u8, text: &str) -> Vec<Output> {
        let has = (self.base - ISN) as u32 + self.forwarded.len() as u32;
        let outputs = self.harness.server(self.answered, has, flags, text.as_bytes());
        self.answered += text.len() as u32;
        self.record(&outputs);
        outputs
    }

    pub fn answers(&mut self, text: &str) -> Vec<Output> {
        self.server(ACK | PSH, text)
    }

    pub fn forwarded(&self) -> &str {
        std::str::from_utf8(&self.forwarded).unwrap()
    }

    /// Returns the bytes that the client has received, without the first `at` bytes.
    pub fn received_after(&self, at: usize) -> &str {
        std::str::from_utf8(&self.received[at..]).unwrap()
    }
}
