//! A client's connection, from the first bytes of its request until the data plane forwards its packets without the
//! agent.
//!
//! Each segment is checked first ([`crate::acceptance`]); an unacceptable segment changes nothing. An acceptable
//! segment of the client updates the client's side, which is the same in every state. Then the current state processes
//! the segment: each state owns its data, and returns the next state. The table lists what may accompany each state.
//! Its column "own bytes" shows whether bytes that the agent itself has sent to the client may be unacknowledged.
//!
//! The column "guess" lists the allowed states of a connection to a guessed server. "Direct": the data plane forwards
//! the connection. "Requested": the agent has requested the connection from the data plane. "Taken": the agent forwards
//! the connection. "Released": the agent has reset the guessed server. "None": the data plane has guessed no server.
//!
//! | state | server | guess | own bytes | next state |
//! |---|---|---|---|---|
//! | reading | none | none, direct, requested, taken | yes | opening, serving (right guess), refusing, over |
//! | opening | SYN sent | none, released | yes | serving, replaying, refusing, over |
//! | replaying | receives the dialogue so far | none | yes | serving, refusing, over |
//! | serving, agent | has the request | any | yes | ordered, over |
//! | serving, ordered | has all bytes that the agent acknowledged | any but requested | no | over |
//! | serving, each request | has one request | any but direct | yes | between, agent, over |
//! | serving, between | has answered the request | any but direct | yes | each request, agent, opening, refusing, over |
//! | refusing | none | none, released | yes | over |
//! | over | none | | | |
//!
//! [`Connection::check`] asserts this table; builds with debug assertions (tests, fuzzing) call it after each event.

mod client;
mod context;
mod exchange;
mod guess;
mod guess_outcome;
mod next;
mod opening;
mod reading;
mod refusing;
mod replaying;
mod server;
mod server_reset;
mod serving;

use crate::acceptance::Verdict;
use crate::facts::Facts;
use crate::order::Status;
use crate::policy::Reason;
use crate::send_buffer::SendBuffer;
use crate::seq::Seq;
use crate::wire::Segment;
use client::Client;
pub use client::Terms;
pub use context::Context;
use guess::Guess;
use next::Next;
use opening::Opening;
use reading::Reading;
use refusing::Refusing;
use replaying::Replaying;
use server_reset::ServerReset;
use serving::Serving;

/// Nanoseconds without an acceptable segment after which the agent ends a connection. A connection with an incomplete
/// request is ended by the timeout of the request instead.
const IDLE: u64 = 300_000_000_000;
/// Nanoseconds for which a connection that client and server have closed stays in memory, to process late segments.
const LINGER: u64 = 5_000_000_000;

/// Whether a connection continues to exist after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Fate {
    /// The connection stays in the agent's memory.
    Stays,
    /// The agent removes the connection.
    Ends,
}

/// What the agent currently does with a connection.
enum State {
    /// The agent reads the request, which is not complete.
    Reading(Reading),
    /// The agent has sent a SYN to a group, and waits for a server's answer.
    Opening(Opening),
    /// The agent replays the client's earlier commands to a server (mail).
    Replaying(Box<Replaying>),
    /// A server has accepted the connection.
    Serving(Box<Serving>),
    /// The agent has sent the client a FIN, often after an error, and still acknowledges the client's bytes.
    Refusing(Refusing),
    /// The connection is over, and the agent removes it.
    Over,
}

impl State {
    /// Performs the actions for entering the state that `next` requests, and returns this state. If the current state
    /// continues, `stay` converts its data to a `State`.
    fn enter<S>(next: Next<S>, stay: impl FnOnce(S) -> State, client: &mut Client, ctx: &mut Context<'_>) -> State {
        match next {
            Next::Stay(state) => stay(state),
            Next::Connect { assignment, has_former_server } => {
                State::Opening(Opening::begin(client, ctx, assignment, has_former_server))
            }
            Next::Replay(server, decision, dialogue_replay) => {
                State::Replaying(Replaying::begin(server, decision, dialogue_replay, client, ctx))
            }
            Next::Serve(server, sticky, framing) => {
                let next = Serving::begin(server, sticky, framing, client, ctx);
                State::enter(next, State::Serving, client, ctx)
            }
            Next::Resume { server, sticky, exchange, acknowledges } => {
                let next = Serving::resume(server, sticky, exchange, acknowledges, client, ctx);
                State::enter(next, State::Serving, client, ctx)
            }
            Next::Refuse(server, rejection) => match refusing::refuse(client, ctx, server, rejection) {
                Some(refusing) => State::Refusing(refusing),
                None => State::Over,
            },
            Next::Close(server) => State::Refusing(refusing::end(client, ctx, server)),
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
    /// Creates a connection. Its client has acknowledged the cookie `own`, the agent's initial sequence number; the
    /// client's first byte has the sequence number `first`.
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

    /// Returns the client's address, the service and the other fixed properties of the connection.
    pub fn terms(&self) -> &Terms {
        &self.client.terms
    }

    /// Runs `work` on the current state, and stores the next state that it returns.
    fn step(&mut self, work: impl FnOnce(State, &mut Client) -> State) -> Fate {
        self.state = work(std::mem::replace(&mut self.state, State::Over), &mut self.client);
        if matches!(self.state, State::Over) { Fate::Ends } else { Fate::Stays }
    }

    /// Processes a client's first segment. If the service's protocol begins with a greeting, and the client has sent no
    /// bytes, the agent sends the greeting without waiting for a request.
    pub fn begin(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let fate = self.on_client(ctx, segment);
        let is_silent = self.client.own_bytes.is_none() && self.client.request.ready().is_empty();
        if fate == Fate::Ends || !is_silent || !self.client.terms.service.rules.greets() {
            return fate;
        }
        self.step(|state, client| match state {
            State::Reading(mut reading) => {
                let outcome = reading.read(client, ctx);
                let next = reading.apply(client, ctx, outcome);
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
        let update = self.client.take(ctx.now, segment);
        if update.acks_released_guess {
            let server = self.server();
            guess_outcome::give_up(&mut self.client, ctx, server);
            return self.step(|_, _| State::Over);
        }
        self.step(|state, client| match state {
            State::Reading(reading) => {
                State::enter(reading.on_client(client, ctx, segment, &update), State::Reading, client, ctx)
            }
            State::Opening(opening) => {
                State::enter(opening.on_client(client, ctx, segment), State::Opening, client, ctx)
            }
            State::Replaying(replaying) => {
                State::enter(replaying.on_client(client, ctx, segment, &update), State::Replaying, client, ctx)
            }
            State::Serving(serving) => {
                State::enter(serving.on_client(client, ctx, segment, &update), State::Serving, client, ctx)
            }
            State::Refusing(refusing) => {
                State::enter(refusing.on_client(client, ctx, segment), State::Refusing, client, ctx)
            }
            State::Over => State::Over,
        })
    }

    /// Returns whether `facts`, the data plane's report about a guessed server, belongs to this connection. Otherwise
    /// the report belongs to a later connection of the same client port.
    pub fn is_guessed(&self, facts: &Facts) -> bool {
        self.client.guess.as_ref().is_some_and(|guess| guess.is_of(facts))
    }

    /// Processes a segment of the client that the data plane has sent with a header. `facts` is the content of this
    /// header: the current state of the connection to the guessed server.
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
            State::Replaying(replaying) => replaying.server().judge(&self.client, ctx.now, segment),
            // The state `Opening` checks answers to its SYN itself.
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
            (State::Replaying(mut replaying), Verdict::Challenge) => {
                replaying.challenge_server(client, ctx, segment);
                State::Replaying(replaying)
            }
            (State::Serving(serving), Verdict::Reset) => {
                serving.on_reset(client, ctx, segment);
                State::Over
            }
            (State::Replaying(replaying), Verdict::Reset) => {
                State::enter(replaying.on_reset(client), State::Replaying, client, ctx)
            }
            (State::Serving(serving), _) => {
                client.last_segment = ctx.now;
                let next = serving.on_server(client, ctx, segment);
                State::enter(next, State::Serving, client, ctx)
            }
            (State::Replaying(replaying), _) => {
                client.last_segment = ctx.now;
                let next = replaying.on_server(client, ctx, segment);
                State::enter(next, State::Replaying, client, ctx)
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

    /// Processes the data plane's answer to the order by which the agent requests a guessed connection.
    pub fn on_taken(&mut self, ctx: &mut Context<'_>, status: Status) -> Fate {
        self.step(|state, client| if client.on_take_answer(ctx, status) { state } else { State::Over })
    }

    /// Runs expired timers.
    pub fn on_time(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.client.on_time(ctx);
        if !self.client.repeat_take(ctx) {
            return self.step(|_, _| State::Over);
        }
        let fate = self.step(|state, client| match state {
            State::Reading(mut reading) => match reading.on_time(client, ctx) {
                Some(rejection) => {
                    State::enter(Next::Refuse(client.guessed_server(), rejection), State::Reading, client, ctx)
                }
                None => State::Reading(reading),
            },
            State::Opening(opening) => State::enter(opening.on_time(client, ctx), State::Opening, client, ctx),
            State::Replaying(replaying) => State::enter(replaying.on_time(client, ctx), State::Replaying, client, ctx),
            State::Serving(serving) => State::enter(serving.on_time(client, ctx), State::Serving, client, ctx),
            State::Refusing(refusing) if refusing.until <= ctx.now => State::Over,
            state => state,
        });
        if self.idle_end() <= ctx.now { Fate::Ends } else { fate }
    }

    fn idle_end(&self) -> u64 {
        if self.waits_since().is_some() {
            // The request is incomplete: the request's own timeout ends the connection.
            return u64::MAX;
        }
        let is_over = self.client.has_all()
            && matches!(&self.state, State::Serving(serving) if serving.server.is_over(self.client.fin));
        self.client.last_segment + if is_over { LINGER } else { IDLE }
    }

    /// Returns the time of the next timer in nanoseconds, at which [`Self::on_time`] is to be called.
    pub fn due(&self) -> u64 {
        let own_bytes = self.client.own_bytes.as_ref().and_then(SendBuffer::due);
        let guess = self.client.guess.as_ref().and_then(|guess| guess.due());
        let state = match &self.state {
            State::Reading(reading) => reading.due(&self.client),
            State::Opening(opening) => Some(opening.due),
            State::Replaying(replaying) => Some(replaying.due()),
            State::Serving(serving) => serving.due(&self.client),
            State::Refusing(refusing) => Some(refusing.until),
            State::Over => None,
        };
        [own_bytes, guess, state].into_iter().flatten().fold(self.idle_end(), u64::min)
    }

    /// Returns the state of the request that is being read, if there is one.
    fn reading(&self) -> Option<&Reading> {
        match &self.state {
            State::Reading(reading) => Some(reading),
            State::Serving(serving) => serving.reading(),
            _ => None,
        }
    }

    /// If the current request is incomplete, returns the time in nanoseconds from which its timeout counts: when its
    /// first byte arrived, or (in a mail dialogue) when the agent last answered.
    pub fn waits_since(&self) -> Option<u64> {
        self.reading()?.since
    }

    /// Returns the time in nanoseconds since which the connection has waited only for its client, so that the agent may
    /// close it to free memory. `None` if the connection waits for a server.
    pub fn yields_since(&self) -> Option<u64> {
        match &self.state {
            State::Refusing(_) => Some(self.client.last_segment),
            // A mail client may be idle for minutes while the agent stays in its dialogue, so the agent may close its
            // connection to free memory.
            State::Serving(serving) if serving.server.fin_forwarded || self.client.terms.service.rules.greets() => {
                Some(self.client.last_segment)
            }
            _ => self.reading().map(|reading| reading.started),
        }
    }

    /// Returns the data of a reset to the connection's current server, if there is a server.
    fn server(&self) -> Option<ServerReset> {
        match &self.state {
            State::Opening(opening) => Some(opening.as_reset(&self.client)),
            State::Replaying(replaying) => Some(replaying.server().as_reset()),
            State::Serving(serving) => Some(serving.server.as_reset()),
            State::Reading(_) | State::Refusing(_) | State::Over => self.client.guessed_server(),
        }
    }

    /// Closes the connection to free memory. A client with an incomplete request receives an error. A connection whose
    /// client was already refused is only removed; any other connection is reset.
    pub fn give_up(&mut self, ctx: &mut Context<'_>) -> Fate {
        let (waits, server) = (self.waits_since().is_some(), self.server());
        self.step(|state, client| {
            if waits {
                let rejection = refusing::rejection(client, Reason::Crowded);
                let _ = refusing::refuse(client, ctx, server, rejection);
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

    /// Called when the agent begins to drain. Ends the connection if it waits for the first byte of its next request,
    /// or if only the client's FIN is missing. Any other connection continues.
    pub fn drain(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.step(|state, client| match state {
            State::Serving(serving) => State::enter(serving.drain(client, ctx), State::Serving, client, ctx),
            state => state,
        })
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let state = match &self.state {
            State::Reading(reading) => reading.memory(),
            State::Opening(opening) => opening.memory(),
            State::Replaying(replaying) => replaying.memory(),
            State::Serving(serving) => serving.memory(),
            State::Refusing(_) | State::Over => 0,
        };
        size_of::<Self>() + self.client.memory() + state
    }

    /// Asserts that state, guess and own bytes are a combination that the table at the head of this module allows.
    pub fn check(&self) {
        self.client.check();
        let guess_is_released = self.client.guess.as_ref().is_none_or(|guess| guess.is_released());
        match &self.state {
            State::Reading(reading) => {
                assert!(!reading.is_idle(), "a connection begins with a request");
                assert!(self.client.guess.as_ref().is_none_or(|guess| !guess.is_released()), "another server is asked");
            }
            State::Opening(_) => assert!(guess_is_released, "one server at a time"),
            State::Replaying(replaying) => replaying.check(&self.client),
            State::Serving(serving) => serving.check(&self.client),
            State::Refusing(_) => assert!(guess_is_released, "a client that was refused has no server"),
            State::Over => {}
        }
    }
}
