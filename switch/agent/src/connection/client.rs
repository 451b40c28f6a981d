//! The client's side of a connection: both ends, what has come of the client and what it was sent. It is the same in every state.

use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::sync::Arc;

use super::context::Context;
use super::end::End;
use super::guess::Guess;
use crate::acceptance::{Challenges, Expected, Verdict};
use crate::assembler::Assembler;
use crate::config::Service;
use crate::cookie::Offer;
use crate::seq::Seq;
use crate::speech::Speech;
use crate::wire::flags::{ACK, FIN, PSH, RST};
use crate::wire::{Head, Segment, sack_option, window_field};

/// How many servers that the connection has left are remembered.
const REMEMBERED: usize = 8;
/// Nanoseconds for which late segments of such a server may arrive: Linux keeps TIME-WAIT as long.
const LATE: u64 = 60_000_000_000;
/// Bytes that a server may have sent behind the last one that came in order.
const UNSEEN: u32 = 64 << 10;

/// The sequence numbers of a server that the connection has left.
struct Left {
    /// The first.
    opened: Seq,
    /// The number behind the last that the server may have sent.
    end: Seq,
    /// When it was left.
    at: u64,
}

/// What does not change while a connection lives.
pub struct Terms {
    /// The client.
    pub client: SocketAddrV4,
    /// The agent's address and port, which the client takes for the service's.
    pub own_address: SocketAddrV4,
    /// The content service, with the rules of when the connection began.
    pub service: Arc<Service>,
    /// Of those rules.
    pub generation: u8,
    /// The options of the client's SYN.
    pub offer: Offer,
    /// The window scale that the agent announced to the client; 0 without scaling.
    pub announced_scale: u8,
    /// Bytes of the agent's window that are announced at most.
    pub window_limit: u16,
}

/// The client's side.
///
/// The client's bytes have its own numbers everywhere. What it is sent has the agent's numbers, which begin with the cookie.
pub struct Client {
    pub terms: Terms,
    /// Its bytes, from the first that no server has acknowledged.
    pub request: Assembler,
    /// The agent has acknowledged what comes before, and owns it until a server has it.
    pub owned: Seq,
    /// A server has acknowledged what comes before.
    confirmed: Seq,
    /// The number of its FIN.
    pub fin: Option<Seq>,
    /// The next number that it is sent.
    pub next: Seq,
    /// What it has acknowledged.
    pub ack: Seq,
    /// Its window field, as it was last.
    pub window: u16,
    /// The number that its window ends before; it never goes back (RFC 9293, section 3.8.6).
    edge: Seq,
    /// Bytes of the agent's own for the client, until it has acknowledged them.
    pub speech: Option<Speech>,
    /// The servers that the connection has left last.
    left: VecDeque<Left>,
    /// What is known of the server that the data plane has guessed.
    pub guess: Option<Box<Guess>>,
    /// When an acceptable segment of either side came last.
    pub last_segment: u64,
    challenges: Challenges,
}

/// What an accepted segment of a client brings.
pub struct News {
    /// More bytes without a gap, or the end behind the last one.
    pub has_come: bool,
    /// It acknowledges bytes of a guessed server that the connection has left.
    pub is_of_left_server: bool,
}

impl Client {
    /// A client that has answered the cookie `own` with its first byte at `first`.
    pub fn new(terms: Terms, (first, own): (Seq, Seq), now: u64) -> Client {
        let request = Assembler::new(first, terms.service.rules.room());
        Client {
            terms,
            request,
            owned: first,
            confirmed: first,
            fin: None,
            next: own + 1,
            ack: own + 1,
            window: 0,
            edge: own + 1,
            speech: None,
            left: VecDeque::new(),
            guess: None,
            last_segment: now,
            challenges: Challenges::default(),
        }
    }

    /// How far the client's window field is to be shifted to count bytes.
    pub fn scale(&self) -> u8 {
        self.terms.offer.scale.unwrap_or(0)
    }

    /// The client's window in bytes.
    pub fn window_bytes(&self) -> u32 {
        u32::from(self.window) << self.scale()
    }

    /// The number that its window ends before.
    pub fn edge(&self) -> Seq {
        self.edge
    }

    /// Judges a segment of the client, before anything is changed.
    pub fn judge(&self, segment: &Segment<'_>) -> Verdict {
        let received = if self.is_finished() { self.request.end() + 1 } else { self.request.end() };
        let expected = Expected {
            next: self.acknowledged(),
            received,
            edge: self.request.edge(),
            una: self.ack,
            sent: self.next + self.guess.as_ref().map_or(0, |guess| guess.unseen(self.next)),
            max_window: u32::from(u16::MAX) << self.scale(),
        };
        match expected.judge(segment) {
            // The data plane has the connection: the server answers, and the agent has not acknowledged anything.
            Verdict::Challenge if self.guess.as_ref().is_some_and(|guess| guess.is_direct()) => Verdict::Drop,
            verdict => verdict,
        }
    }

    /// Takes an acceptable segment.
    pub fn take(&mut self, now: u64, segment: &Segment<'_>) -> News {
        self.last_segment = now;
        let is_of_left_server = self.follow_guess(segment);
        self.window = segment.window();
        self.ack = self.ack.later(segment.ack());
        self.edge = self.edge.later(segment.ack() + self.window_bytes());
        if self.speech.as_ref().is_some_and(|speech| !self.ack.is_before(speech.end())) {
            self.speech = None;
        }
        let before = self.request.end();
        let data_end = segment.seq() + segment.payload().len() as u32;
        if segment.has(FIN) && self.fin.is_none() && !data_end.is_before(self.request.last()) {
            self.fin = Some(data_end);
        }
        // RFC 9293, section 3.10.7.4: nothing follows a FIN.
        let length = self.fin.map_or(usize::MAX, |fin| fin.since(segment.seq())).min(segment.payload().len());
        self.request.insert(segment.seq(), &segment.payload()[..length]);
        let has_come = before.is_before(self.request.end()) || (segment.has(FIN) && self.is_finished());
        News { has_come, is_of_left_server }
    }

    /// Notes what a server has acknowledged: it is the server's from then on.
    pub fn confirm(&mut self, una: Seq) {
        self.confirmed = self.confirmed.later(una);
        self.request.forget_before(una);
    }

    /// Whether the client's FIN is all that is left of its side.
    pub fn is_finished(&self) -> bool {
        self.fin == Some(self.request.end())
    }

    /// What the client has been, or may be, acknowledged.
    pub fn acknowledged(&self) -> Seq {
        self.owned.later(self.confirmed)
    }

    /// Whether the client has acknowledged all that it was sent.
    pub fn has_all(&self) -> bool {
        self.ack == self.next
    }

    /// The head of a segment of the agent's own to the client.
    fn head(&self, seq: Seq, flags: u8) -> Head {
        let room = self.request.edge().since(self.acknowledged()).min(self.terms.window_limit.into());
        Head {
            source: self.terms.own_address,
            destination: self.terms.client,
            seq,
            ack: self.acknowledged(),
            flags,
            window: window_field(room, self.terms.announced_scale),
        }
    }

    /// Answers a segment that is not acceptable.
    pub fn challenge(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.challenges.may_answer(ctx.now, segment) {
            self.acknowledge(ctx);
        }
    }

    /// Tells the client what the agent has, with what lies beyond gaps.
    pub fn acknowledge(&self, ctx: &mut Context<'_>) {
        let head = self.head(self.next, ACK);
        let blocks = self.terms.offer.sack.then(|| self.request.islands()).into_iter().flatten();
        let (option, length) = sack_option(blocks.take(3));
        ctx.out.push_with(|frame| head.write(&ctx.link, &option[..length], [b"", b""], frame));
    }

    /// Takes over what has come, and says so.
    pub fn own(&mut self, ctx: &mut Context<'_>) {
        self.take_turn(ctx);
        self.owned = self.request.end();
        self.acknowledge(ctx);
    }

    /// Says something to the client, until it has it.
    pub fn say(&mut self, ctx: &mut Context<'_>, bytes: Vec<u8>, ends: bool) {
        self.take_turn(ctx);
        self.owned = self.request.end() + u32::from(ends && self.is_finished());
        match &mut self.speech {
            Some(speech) => speech.add(&bytes, ends, ctx.now),
            None => self.speech = Some(Speech::new(self.next, bytes, ends, ctx.now)),
        }
        self.speak(ctx);
    }

    /// Says again what is due.
    pub fn on_time(&mut self, ctx: &mut Context<'_>) {
        if self.speech.as_mut().is_some_and(|speech| speech.is_due(ctx.now)) {
            self.speak(ctx);
        }
    }

    /// Sends what the client has not acknowledged of the agent's own words.
    fn speak(&mut self, ctx: &mut Context<'_>) {
        let Some(speech) = &self.speech else { return };
        let (mut seq, mut rest) = speech.rest(self.ack);
        loop {
            let (segment, further) = rest.split_at(rest.len().min(usize::from(self.terms.offer.mss)));
            let is_end = speech.ends() && further.is_empty();
            let head = self.head(seq, ACK | PSH | if is_end { FIN } else { 0 });
            ctx.out.push_with(|frame| head.write(&ctx.link, &[], [segment, b""], frame));
            (seq, rest) = (seq + segment.len() as u32, further);
            if rest.is_empty() {
                break;
            }
        }
        self.next = self.next.later(speech.end());
    }

    /// Resets the client's side (RFC 9293, section 3.5.2): at the next number that it expects, which is one of two.
    pub fn reset(&self, ctx: &mut Context<'_>) {
        let mut reset = |seq| {
            let head = Head { window: 0, ..self.head(seq, RST | ACK) };
            ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
        };
        reset(self.next);
        if !self.has_all() {
            reset(self.ack);
        }
    }

    /// Notes that the connection leaves a server that has used the numbers from `opened` to `next`.
    pub fn note_left(&mut self, now: u64, opened: Seq, next: Seq) {
        if self.left.len() == REMEMBERED {
            self.left.pop_front();
        }
        self.left.push_back(Left { opened, end: next + UNSEEN, at: now });
    }

    /// Whether a server's number is among those of a server that the connection has left. A host that is opened again by the same
    /// addresses and ports adds less than 16 MB to its initial number for each second since (Linux: `secure_tcp_seq`). So the new
    /// numbers may begin among those of its last answer: only TIME-WAIT keeps them apart, and a reset leaves that out.
    pub fn is_among_left(&self, now: u64, seq: Seq) -> bool {
        let is_used = |left: &Left| now < left.at + LATE && !seq.is_before(left.opened) && seq.is_before(left.end);
        self.left.iter().any(is_used)
    }

    /// When the last of the left servers' late segments have expired; none where the connection has left no server lately.
    pub fn late_until(&self) -> Option<u64> {
        self.left.back().map(|left| left.at + LATE)
    }

    /// Forgets the servers whose late segments are not to be expected any more.
    pub fn forget_left(&mut self, now: u64) {
        while self.left.front().is_some_and(|left| left.at + LATE <= now) {
            self.left.pop_front();
        }
    }

    /// Leaves the server of the connection, if it has one.
    pub fn leave(&mut self, ctx: &mut Context<'_>, server: Option<End>) {
        let Some(server) = server else { return };
        self.send_reset(ctx, server);
        if let Some(guess) = &mut self.guess {
            guess.leave();
        }
    }

    /// Resets a server in the client's name.
    pub fn send_reset(&self, ctx: &mut Context<'_>, End { group, seq }: End) {
        let destination = self.terms.service.groups[group].address;
        let head = Head { source: self.terms.client, destination, seq, ack: Seq(0), flags: RST, window: 0 };
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
    }

    /// Memory taken beside the structure itself.
    pub fn memory(&self) -> usize {
        let speech = self.speech.as_ref().map_or(0, Speech::memory);
        let guess = if self.guess.is_some() { size_of::<Guess>() } else { 0 };
        self.request.memory() + self.left.capacity() * size_of::<Left>() + speech + guess
    }

    /// Asserts what holds in every state.
    pub fn check(&self) {
        assert!(!self.acknowledged().is_before(self.request.base()), "what is kept is not forgotten elsewhere");
        assert!(!self.next.is_before(self.ack), "the client acknowledges only what it was sent");
        assert!(self.fin.is_none_or(|fin| !fin.is_before(self.request.last())), "nothing follows a FIN");
    }
}
