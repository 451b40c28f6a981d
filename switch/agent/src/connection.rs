//! A connection from its first bytes of a request until the data plane has it.
//!
//! Every segment is judged first ([`crate::acceptance`]); one that is not acceptable changes nothing. An acceptable one of the client
//! changes the client's side, which is the same in every state, and then the state takes it: it owns what it works with, and gives
//! the next state. What may stand beside each state:
//!
//! | state | server | guess | agent's words on their way | next |
//! |---|---|---|---|---|
//! | reading | none | none, direct, asked, taken | yes | opening, serving (right guess), refusing, over |
//! | opening | asked | none, left | yes | serving, repeating, refusing, over |
//! | repeating | hears a dialogue again | none | yes | serving, refusing, over |
//! | serving, the agent's turn | has the request | any | yes, or the server owes an acknowledgement | ordered, over |
//! | serving, ordered | has all that the agent owned | any but asked | no | over |
//! | serving, each request | has one request | any but direct | yes | between, the agent's turn, over |
//! | serving, between | has answered it | any but direct | yes | each, the agent's turn, opening, refusing, over |
//! | refusing | none | none, left | yes | over |
//! | over | none | | | |
//!
//! [`Connection::check`] asserts it; builds with debug assertions (tests, fuzzing) call it after every event.

mod client;
mod exchange;
mod guess;
mod opening;
mod reading;
mod refusing;
mod repeating;
mod server;
mod serving;

use crate::acceptance::Verdict;
use crate::decider::Reason;
use crate::facts::Facts;
use crate::frames::Frames;
use crate::order::Status;
use crate::pool::Pools;
use crate::seq::Seq;
use crate::speech::Speech;
use crate::wire::{Link, Segment};
use client::Client;
pub use client::Terms;
pub use guess::Guess;
use opening::Opening;
use reading::Reading;
use refusing::Refusing;
use repeating::Repeating;
use server::End;
use serving::Serving;

/// How long a connection may be silent in the agent's hands.
const IDLE: u64 = 300_000_000_000;
/// How long one that both sides have ended is kept for late segments.
const LINGER: u64 = 5_000_000_000;

/// What a connection works with, for one event.
pub struct Context<'e> {
    /// Nanoseconds of a clock that only goes forward.
    pub now: u64,
    /// Between the agent and the router.
    pub link: Link,
    /// What goes out.
    pub out: &'e mut Frames,
    /// What servers can do.
    pub pools: &'e mut Pools,
    /// Something new was learned about them.
    pub has_learned: bool,
    /// The agent takes no new work.
    pub is_draining: bool,
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// The agent keeps it.
    Stays,
    /// The agent forgets it.
    Ends,
}

/// Where a connection is on its way to a server.
enum State {
    /// The request is not complete.
    Reading(Reading),
    /// A server is asked.
    Opening(Opening),
    /// What the client has sent is repeated to a server.
    Repeating(Box<Repeating>),
    /// A server has answered.
    Serving(Box<Serving>),
    /// The client hears why not.
    Refusing(Refusing),
    /// Nothing is left: the agent forgets the connection.
    Over,
}

/// A connection.
pub struct Connection {
    client: Client,
    state: State,
}

impl Connection {
    /// A connection whose client has answered the cookie `own` with its first byte at `first`.
    pub fn new(terms: Terms, (first, own): (Seq, Seq), now: u64) -> Connection {
        let client = Client::new(terms, (first, own), now);
        let state = State::Reading(Reading::new(&client, now));
        Connection { client, state }
    }

    /// The same, whose client the data plane has connected to a guessed server.
    pub fn guessed(terms: Terms, (first, own): (Seq, Seq), facts: &Facts, now: u64) -> Connection {
        let mut connection = Connection::new(terms, (first, own), now);
        connection.client.guess = Some(Box::new(Guess::new(*facts, own + 1)));
        connection
    }

    /// Client and content service.
    pub fn terms(&self) -> &Terms {
        &self.client.terms
    }

    /// Has the state work, which gives the next one.
    fn step(&mut self, work: impl FnOnce(State, &mut Client) -> State) -> Fate {
        self.state = work(std::mem::replace(&mut self.state, State::Over), &mut self.client);
        if matches!(self.state, State::Over) { Fate::Ends } else { Fate::Stays }
    }

    /// Takes the first segment of a client. An agent that greets does not wait for a request.
    pub fn begin(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let fate = self.on_client(ctx, segment);
        let is_silent = self.client.speech.is_none() && self.client.request.ready().is_empty();
        if fate == Fate::Ends || !is_silent || !self.client.terms.service.rules.greets() {
            return fate;
        }
        self.step(|state, client| match state {
            State::Reading(mut reading) => {
                let outcome = reading.read(client, ctx);
                reading.follow(client, ctx, outcome)
            }
            state => state,
        })
    }

    /// Takes a segment of the client.
    pub fn on_client(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        match self.client.judge(segment) {
            Verdict::Drop => return Fate::Stays,
            Verdict::Challenge => {
                match &self.state {
                    State::Serving(serving) => serving.challenge_client(&mut self.client, ctx, segment),
                    _ => self.client.challenge(ctx, segment),
                }
                return Fate::Stays;
            }
            Verdict::Reset => {
                self.client.terms.service.counters.resets.add(1);
                let server = self.server();
                self.client.leave(ctx, server);
                return self.step(|_, _| State::Over);
            }
            Verdict::Accept => {}
        }
        let news = self.client.take(ctx.now, segment);
        if news.is_of_left_server {
            let server = self.server();
            return self.step(|_, client| guess::give_up(client, ctx, server));
        }
        self.step(|state, client| match state {
            State::Reading(reading) => reading.on_client(client, ctx, segment, &news),
            State::Opening(opening) => opening.on_client(client, ctx, segment),
            State::Repeating(repeating) => repeating.on_client(client, ctx, segment, &news),
            State::Serving(serving) => serving.on_client(client, ctx, segment, &news),
            State::Refusing(refusing) => refusing.on_client(client, ctx, segment),
            State::Over => State::Over,
        })
    }

    /// Whether the facts are of this connection, and not of a later one of the same client's port.
    pub fn is_guessed(&self, facts: &Facts) -> bool {
        self.client.guess.as_ref().is_some_and(|guess| guess.is_of(facts))
    }

    /// Takes a segment of the client, with what the data plane knows by now.
    pub fn on_guessed(&mut self, ctx: &mut Context<'_>, facts: &Facts, segment: &Segment<'_>) -> Fate {
        if let Some(guess) = &mut self.client.guess {
            guess.update(facts);
        }
        self.on_client(ctx, segment)
    }

    /// Takes a segment of a server.
    pub fn on_server(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let verdict = match &self.state {
            State::Serving(serving) => serving.server.judge(&self.client, segment),
            State::Repeating(repeating) => repeating.server().judge(&self.client, segment),
            // What answers a SYN is judged there.
            State::Opening(_) => Verdict::Accept,
            State::Reading(_) | State::Refusing(_) | State::Over => Verdict::Drop,
        };
        if verdict == Verdict::Drop {
            return Fate::Stays;
        }
        self.step(|state, client| match (state, verdict) {
            (State::Opening(opening), _) => opening.on_server(client, ctx, segment),
            (State::Serving(mut serving), Verdict::Challenge) => {
                serving.challenge_server(client, ctx, segment);
                State::Serving(serving)
            }
            (State::Repeating(mut repeating), Verdict::Challenge) => {
                repeating.challenge_server(client, ctx, segment);
                State::Repeating(repeating)
            }
            (State::Serving(serving), Verdict::Reset) => serving.on_reset(client, ctx, segment),
            (State::Repeating(repeating), Verdict::Reset) => repeating.on_reset(client, ctx),
            (State::Serving(serving), _) => {
                client.last_segment = ctx.now;
                serving.on_server(client, ctx, segment)
            }
            (State::Repeating(repeating), _) => {
                client.last_segment = ctx.now;
                repeating.on_server(client, ctx, segment)
            }
            (state, _) => state,
        })
    }

    /// Takes the data plane's confirmation of a splice order.
    pub fn on_order(&mut self, ctx: &mut Context<'_>, status: Status) -> Fate {
        self.step(|state, client| match state {
            State::Serving(serving) => serving.on_order(client, ctx, status),
            state => state,
        })
    }

    /// Takes the data plane's confirmation that the agent has a guessed connection.
    pub fn on_taken(&mut self, ctx: &mut Context<'_>, status: Status) -> Fate {
        self.step(|state, client| if client.on_turn(ctx, status) { state } else { State::Over })
    }

    /// Does what is due.
    pub fn on_time(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.client.on_time(ctx);
        if !self.client.take_turn_again(ctx) {
            return self.step(|_, _| State::Over);
        }
        let fate = self.step(|state, client| match state {
            State::Reading(mut reading) => match reading.on_time(client, ctx) {
                Some(refusal) => refusing::refuse(client, ctx, client.guessed_server(), refusal),
                None => State::Reading(reading),
            },
            State::Opening(opening) => opening.on_time(client, ctx),
            State::Repeating(repeating) => repeating.on_time(client, ctx),
            State::Serving(serving) => serving.on_time(client, ctx),
            State::Refusing(refusing) if refusing.until <= ctx.now => State::Over,
            state => state,
        });
        if self.idle_end() <= ctx.now { Fate::Ends } else { fate }
    }

    fn idle_end(&self) -> u64 {
        if self.waits_since().is_some() {
            // It ends when the client's time is up.
            return u64::MAX;
        }
        let is_over = self.client.has_all()
            && matches!(&self.state, State::Serving(serving) if serving.server.is_over(self.client.fin));
        self.client.last_segment + if is_over { LINGER } else { IDLE }
    }

    /// When [`Self::on_time`] has something to do.
    pub fn due(&self) -> u64 {
        let speech = self.client.speech.as_ref().and_then(Speech::due);
        let guess = self.client.guess.as_ref().and_then(|guess| guess.due());
        let state = match &self.state {
            State::Reading(reading) => reading.due(&self.client),
            State::Opening(opening) => Some(opening.due),
            State::Repeating(repeating) => Some(repeating.due()),
            State::Serving(serving) => serving.due(&self.client),
            State::Refusing(refusing) => Some(refusing.until),
            State::Over => None,
        };
        [speech, guess, state].into_iter().flatten().fold(self.idle_end(), u64::min)
    }

    /// The request that is read, if one is.
    fn reading(&self) -> Option<&Reading> {
        match &self.state {
            State::Reading(reading) => Some(reading),
            State::Serving(serving) => serving.reading(),
            _ => None,
        }
    }

    /// Since when a request waits for its other bytes, if one does.
    pub fn waits_since(&self) -> Option<u64> {
        self.reading()?.since
    }

    /// Since when the connection only waits for its client: it may be given up for others.
    pub fn yields_since(&self) -> Option<u64> {
        match &self.state {
            State::Refusing(_) => Some(self.client.last_segment),
            // A client of a mail server may be silent for minutes, and the agent may stay in its dialogue.
            State::Serving(serving) if serving.server.fin_seen || self.client.terms.service.rules.greets() => {
                Some(self.client.last_segment)
            }
            _ => self.reading().map(|reading| reading.begun),
        }
    }

    /// The server that would have to be left.
    fn server(&self) -> Option<End> {
        match &self.state {
            State::Opening(opening) => Some(opening.end(&self.client)),
            State::Repeating(repeating) => Some(repeating.server().end()),
            State::Serving(serving) => Some(serving.server.end()),
            State::Reading(_) | State::Refusing(_) | State::Over => self.client.guessed_server(),
        }
    }

    /// Gives the connection up for others: a request is refused, and one that has not begun finds no connection.
    pub fn give_up(&mut self, ctx: &mut Context<'_>) -> Fate {
        let (waits, server) = (self.waits_since().is_some(), self.server());
        self.step(|state, client| {
            if waits {
                let refusal = refusing::apology(client, Reason::Crowded);
                let _ = refusing::refuse(client, ctx, server, refusal);
            } else if !matches!(state, State::Refusing(_)) {
                client.terms.service.counters.refuse(Reason::Crowded.name());
                match state {
                    State::Serving(serving) => serving.server.abort(client, ctx),
                    _ => {
                        client.leave(ctx, server);
                        client.reset(ctx);
                    }
                }
            }
            State::Over
        })
    }

    /// The agent takes no new work: the connection ends if no request is under way.
    pub fn part(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.step(|state, client| match state {
            State::Serving(serving) => serving.part(client, ctx),
            state => state,
        })
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        let state = match &self.state {
            State::Reading(reading) => reading.memory(),
            State::Opening(opening) => opening.memory(),
            State::Repeating(repeating) => repeating.memory(),
            State::Serving(serving) => serving.memory(),
            State::Refusing(_) | State::Over => 0,
        };
        size_of::<Self>() + self.client.memory() + state
    }

    /// Asserts that state, guess and words go together as the table at the head says.
    pub fn check(&self) {
        self.client.check();
        let is_left = self.client.guess.as_ref().is_none_or(|guess| guess.is_left());
        match &self.state {
            State::Reading(reading) => {
                assert!(!reading.is_idle(), "a connection begins with a request");
                assert!(self.client.guess.as_ref().is_none_or(|guess| !guess.is_left()), "another server is asked");
            }
            State::Opening(_) => assert!(is_left, "one server at a time"),
            State::Repeating(repeating) => repeating.check(&self.client),
            State::Serving(serving) => serving.check(&self.client),
            State::Refusing(_) => assert!(is_left, "a client that was refused has no server"),
            State::Over => {}
        }
    }
}
