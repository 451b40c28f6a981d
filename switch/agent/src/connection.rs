//! A client's connection, from the first bytes of its request until the data plane forwards it alone.
//!
//! Each segment is checked first ([`crate::acceptance`]); one that is not acceptable changes nothing. An acceptable
//! segment of the client updates the client's side, which is the same in every state. Then the current state
//! processes it: each state owns its data, and returns the next state. The table lists what may accompany each state.
//! Its column "own bytes" shows whether bytes that the agent itself has sent to the client may be unacknowledged.
//!
//! | state | server | guess | own bytes | next state |
//! |---|---|---|---|---|
//! | reading | none | none, direct, requested, taken | yes | opening, serving (right guess), refusing, over |
//! | opening | SYN sent | none, released | yes | serving, replaying, refusing, over |
//! | replaying | receives the dialogue so far | none | yes | serving, refusing, over |
//! | serving, agent | has the request | any | yes, or the server owes an ACK | ordered, over |
//! | serving, ordered | has all bytes that the agent acknowledged | any but requested | no | over |
//! | serving, each request | has one request | any but direct | yes | between, agent, over |
//! | serving, between | has answered the request | any but direct | yes | each request, agent, opening, refusing, over |
//! | refusing | none | none, released | yes | over |
//! | over | none | | | |
//!
//! [`Connection::check`] asserts this table; builds with debug assertions (tests, fuzzing) call it after each event.

mod client;
mod context;
mod end;
mod exchange;
mod guess;
mod guess_outcome;
mod next;
mod opening;
mod reading;
mod refusing;
mod repeating;
mod server;
mod serving;

use crate::acceptance::Verdict;
use crate::decider::Reason;
use crate::facts::Facts;
use crate::order::Status;
use crate::seq::Seq;
use crate::speech::Speech;
use crate::wire::Segment;
use client::Client;
pub use client::Terms;
pub use context::Context;
use end::End;
use guess::Guess;
use next::Next;
use opening::Opening;
use reading::Reading;
use refusing::Refusing;
use repeating::Repeating;
use serving::Serving;

/// Nanoseconds without a segment after which the agent ends a connection.
const IDLE: u64 = 300_000_000_000;
/// Nanoseconds for which a connection that both sides have closed is kept for late segments.
const LINGER: u64 = 5_000_000_000;

/// Whether a connection continues after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// The agent keeps the connection.
    Stays,
    /// The agent forgets the connection.
    Ends,
}

/// The state of a connection on its way to a server.
enum State {
    /// The agent reads the request, which is not complete.
    Reading(Reading),
    /// The agent has sent a SYN to a group, and waits for a server's answer.
    Opening(Opening),
    /// The agent replays the client's earlier commands to a server (mail).
    Repeating(Box<Repeating>),
    /// A server has accepted the connection.
    Serving(Box<Serving>),
    /// The agent sends the client an error, and ends the connection.
    Refusing(Refusing),
    /// The connection is over; the agent forgets it.
    Over,
}

impl State {
    /// The state that `next` asks for, after its first work; `stay` wraps the current state if it continues.
    fn enter<S>(next: Next<S>, stay: impl FnOnce(S) -> State, client: &mut Client, ctx: &mut Context<'_>) -> State {
        match next {
            Next::Stay(state) => stay(state),
            Next::Ask { route, has_left } => State::Opening(Opening::begin(client, ctx, route, has_left)),
            Next::Repeat(server, decision, repetition) => {
                State::Repeating(Repeating::begin(server, decision, repetition, client, ctx))
            }
            Next::Serve(server, sticky, framing) => {
                let next = Serving::begin(server, sticky, framing, client, ctx);
                State::enter(next, State::Serving, client, ctx)
            }
            Next::Resume { server, sticky, exchange, acknowledges } => {
                let next = Serving::resume(server, sticky, exchange, acknowledges, client, ctx);
                State::enter(next, State::Serving, client, ctx)
            }
            Next::Refuse(server, refusal) => match refusing::refuse(client, ctx, server, refusal) {
                Some(refusing) => State::Refusing(refusing),
                None => State::Over,
            },
            Next::End(server) => State::Refusing(refusing::end(client, ctx, server)),
            Next::Over => State::Over,
        }
    }
}

/// A client's connection.
pub struct Connection {
    client: Client,
    state: State,
}

impl Connection {
    /// Creates a connection whose client has acknowledged the cookie `own`, and whose first byte has the number
    /// `first`.
    pub fn new(terms: Terms, (first, own): (Seq, Seq), now: u64) -> Connection {
        let client = Client::new(terms, (first, own), now);
        let state = State::Reading(Reading::new(&client, now));
        Connection { client, state }
    }

    /// Creates a connection whose client the data plane has already connected to a guessed server.
    pub fn guessed(terms: Terms, (first, own): (Seq, Seq), facts: &Facts, now: u64) -> Connection {
        let mut connection = Connection::new(terms, (first, own), now);
        connection.client.guess = Some(Box::new(Guess::new(*facts, own + 1)));
        connection
    }

    /// Client, service and other fixed properties.
    pub fn terms(&self) -> &Terms {
        &self.client.terms
    }

    /// Runs `work` on the current state, and stores the next state that it returns.
    fn step(&mut self, work: impl FnOnce(State, &mut Client) -> State) -> Fate {
        self.state = work(std::mem::replace(&mut self.state, State::Over), &mut self.client);
        if matches!(self.state, State::Over) { Fate::Ends } else { Fate::Stays }
    }

    /// Processes a client's first segment. Where the agent sends a greeting, it does so without waiting for a
    /// request.
    pub fn begin(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let fate = self.on_client(ctx, segment);
        let is_silent = self.client.speech.is_none() && self.client.request.ready().is_empty();
        if fate == Fate::Ends || !is_silent || !self.client.terms.service.rules.greets() {
            return fate;
        }
        self.step(|state, client| match state {
            State::Reading(mut reading) => {
                let outcome = reading.read(client, ctx);
                let next = reading.follow(client, ctx, outcome);
                State::enter(next, State::Reading, client, ctx)
            }
            state => state,
        })
    }

    /// Processes a segment of the client.
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
            guess_outcome::give_up(&mut self.client, ctx, server);
            return self.step(|_, _| State::Over);
        }
        self.step(|state, client| match state {
            State::Reading(reading) => {
                State::enter(reading.on_client(client, ctx, segment, &news), State::Reading, client, ctx)
            }
            State::Opening(opening) => {
                State::enter(opening.on_client(client, ctx, segment), State::Opening, client, ctx)
            }
            State::Repeating(repeating) => {
                State::enter(repeating.on_client(client, ctx, segment, &news), State::Repeating, client, ctx)
            }
            State::Serving(serving) => {
                State::enter(serving.on_client(client, ctx, segment, &news), State::Serving, client, ctx)
            }
            State::Refusing(refusing) => {
                State::enter(refusing.on_client(client, ctx, segment), State::Refusing, client, ctx)
            }
            State::Over => State::Over,
        })
    }

    /// Whether these facts are of this connection, and not of a later one from the same client port.
    pub fn is_guessed(&self, facts: &Facts) -> bool {
        self.client.guess.as_ref().is_some_and(|guess| guess.is_of(facts))
    }

    /// Processes a segment of the client that arrived with the data plane's current facts of the guess.
    pub fn on_guessed(&mut self, ctx: &mut Context<'_>, facts: &Facts, segment: &Segment<'_>) -> Fate {
        if let Some(guess) = &mut self.client.guess {
            guess.update(facts);
        }
        self.on_client(ctx, segment)
    }

    /// Processes a segment of a server.
    pub fn on_server(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let verdict = match &self.state {
            State::Serving(serving) => serving.server.judge(&self.client, ctx.now, segment),
            State::Repeating(repeating) => repeating.server().judge(&self.client, ctx.now, segment),
            // The opening state itself checks answers to its SYN.
            State::Opening(_) => Verdict::Accept,
            State::Reading(_) | State::Refusing(_) | State::Over => Verdict::Drop,
        };
        if verdict == Verdict::Drop {
            return Fate::Stays;
        }
        self.step(|state, client| match (state, verdict) {
            (State::Opening(opening), _) => {
                State::enter(opening.on_server(client, ctx, segment), State::Opening, client, ctx)
            }
            (State::Serving(mut serving), Verdict::Challenge) => {
                serving.challenge_server(client, ctx, segment);
                State::Serving(serving)
            }
            (State::Repeating(mut repeating), Verdict::Challenge) => {
                repeating.challenge_server(client, ctx, segment);
                State::Repeating(repeating)
            }
            (State::Serving(serving), Verdict::Reset) => {
                serving.on_reset(client, ctx, segment);
                State::Over
            }
            (State::Repeating(repeating), Verdict::Reset) => {
                State::enter(repeating.on_reset(client), State::Repeating, client, ctx)
            }
            (State::Serving(serving), _) => {
                client.last_segment = ctx.now;
                let next = serving.on_server(client, ctx, segment);
                State::enter(next, State::Serving, client, ctx)
            }
            (State::Repeating(repeating), _) => {
                client.last_segment = ctx.now;
                let next = repeating.on_server(client, ctx, segment);
                State::enter(next, State::Repeating, client, ctx)
            }
            (state, _) => state,
        })
    }

    /// Processes the data plane's answer to a splice order.
    pub fn on_order(&mut self, ctx: &mut Context<'_>, status: Status) -> Fate {
        self.step(|state, client| match state {
            State::Serving(serving) => State::enter(serving.on_order(client, ctx, status), State::Serving, client, ctx),
            state => state,
        })
    }

    /// Processes the data plane's answer to the order by which the agent takes a guessed connection.
    pub fn on_taken(&mut self, ctx: &mut Context<'_>, status: Status) -> Fate {
        self.step(|state, client| if client.on_turn(ctx, status) { state } else { State::Over })
    }

    /// Runs expired timers.
    pub fn on_time(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.client.on_time(ctx);
        if !self.client.take_turn_again(ctx) {
            return self.step(|_, _| State::Over);
        }
        let fate = self.step(|state, client| match state {
            State::Reading(mut reading) => match reading.on_time(client, ctx) {
                Some(refusal) => {
                    State::enter(Next::Refuse(client.guessed_server(), refusal), State::Reading, client, ctx)
                }
                None => State::Reading(reading),
            },
            State::Opening(opening) => State::enter(opening.on_time(client, ctx), State::Opening, client, ctx),
            State::Repeating(repeating) => State::enter(repeating.on_time(client, ctx), State::Repeating, client, ctx),
            State::Serving(serving) => State::enter(serving.on_time(client, ctx), State::Serving, client, ctx),
            State::Refusing(refusing) if refusing.until <= ctx.now => State::Over,
            state => state,
        });
        if self.idle_end() <= ctx.now { Fate::Ends } else { fate }
    }

    fn idle_end(&self) -> u64 {
        if self.waits_since().is_some() {
            // Such a connection ends by the timeout of its request.
            return u64::MAX;
        }
        let is_over = self.client.has_all()
            && matches!(&self.state, State::Serving(serving) if serving.server.is_over(self.client.fin));
        self.client.last_segment + if is_over { LINGER } else { IDLE }
    }

    /// The time of the next timer, at which [`Self::on_time`] is to be called.
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

    /// The request that is being read, if any.
    fn reading(&self) -> Option<&Reading> {
        match &self.state {
            State::Reading(reading) => Some(reading),
            State::Serving(serving) => serving.reading(),
            _ => None,
        }
    }

    /// The time at which the current request's first byte arrived, if the request is incomplete.
    pub fn waits_since(&self) -> Option<u64> {
        self.reading()?.since
    }

    /// The time since which the connection waits for its client only, so that it may be closed to free memory. None
    /// if it waits for a server.
    pub fn yields_since(&self) -> Option<u64> {
        match &self.state {
            State::Refusing(_) => Some(self.client.last_segment),
            // A client of a mail server may be idle for minutes, and the agent may stay in its dialogue.
            State::Serving(serving) if serving.server.fin_seen || self.client.terms.service.rules.greets() => {
                Some(self.client.last_segment)
            }
            _ => self.reading().map(|reading| reading.begun),
        }
    }

    /// How to reset the connection's current server, if it has one.
    fn server(&self) -> Option<End> {
        match &self.state {
            State::Opening(opening) => Some(opening.end(&self.client)),
            State::Repeating(repeating) => Some(repeating.server().end()),
            State::Serving(serving) => Some(serving.server.end()),
            State::Reading(_) | State::Refusing(_) | State::Over => self.client.guessed_server(),
        }
    }

    /// Closes the connection to free memory: a request is refused with an error, an idle connection is reset.
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

    /// Ends the connection if no request is under way, because the agent is draining.
    pub fn part(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.step(|state, client| match state {
            State::Serving(serving) => State::enter(serving.part(client, ctx), State::Serving, client, ctx),
            state => state,
        })
    }

    /// Returns the bytes of memory in use.
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

    /// Asserts that state, guess and own bytes agree with the table at the head of this module.
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
