//! A server has answered: the agent hands the request on and translates, until the data plane takes over, or, where each request is
//! decided anew, to the end.

use super::client::{Client, News};
use super::context::Context;
use super::exchange::Exchange;
use super::next::Next;
use super::reading::{Outcome, Reading};
use super::server::{Server, is_bare};
use crate::decider::{Framing, Progress, Refusal, Route, Sticky};
use crate::order::{self, ORDERS, Order, REPEAT, Remember, Status};
use crate::seq::Seq;
use crate::wire::Segment;
use crate::wire::flags::FIN;

/// A connection that a server has.
pub struct Serving {
    pub server: Server,
    sticky: Sticky,
    turn: Turn,
}

/// Who translates, and until when.
enum Turn {
    /// The agent, until the server has what the agent owns.
    Agent,
    /// The data plane is asked.
    Ordered { due: u64, sent: u32 },
    /// The agent, for this request and its response.
    Each(Exchange),
    /// The agent: the exchange is over, and the next request is read.
    Between(Exchange, Reading),
}

impl Serving {
    /// Begins with a server: splices at once, if the agent owes it nothing.
    pub fn begin(
        server: Server,
        sticky: Sticky,
        framing: Option<Box<dyn Framing>>,
        client: &mut Client,
        ctx: &mut Context<'_>,
    ) -> Next<Box<Serving>> {
        let turn = Turn::new(framing, client, &server);
        let mut serving = Serving { server, sticky, turn };
        if let Some(refusal) = serving.follow_request(client) {
            return Next::Refuse(Some(serving.server.end()), refusal);
        }
        if !serving.advance(client, ctx) {
            serving.server.acknowledge(client, ctx);
        }
        Next::Stay(Box::new(serving))
    }

    /// Goes on with a server to which a dialogue has been repeated: all else that comes is the client's. Where the agent reads on, by
    /// this exchange. The server is acknowledged if it is to be, and is sent nothing.
    pub fn resume(
        server: Server,
        sticky: Sticky,
        exchange: Option<Exchange>,
        acknowledges: bool,
        client: &mut Client,
        ctx: &mut Context<'_>,
    ) -> Next<Box<Serving>> {
        let mut serving = Serving { server, sticky, turn: exchange.map_or(Turn::Agent, Turn::Each) };
        if let Some(refusal) = serving.follow_request(client) {
            return Next::Refuse(Some(serving.server.end()), refusal);
        }
        if !serving.advance(client, ctx) && acknowledges {
            serving.server.acknowledge(client, ctx);
        }
        Next::Stay(Box::new(serving))
    }

    /// The client's bytes before this number are meant for this server.
    fn limit(&self, client: &Client) -> Seq {
        self.exchange().map_or(client.request.end(), |exchange| exchange.limit)
    }

    /// The exchange, where each request is decided anew.
    fn exchange(&self) -> Option<&Exchange> {
        match &self.turn {
            Turn::Each(exchange) | Turn::Between(exchange, _) => Some(exchange),
            Turn::Agent | Turn::Ordered { .. } => None,
        }
    }

    /// The next request that is read, if one is.
    pub fn reading(&self) -> Option<&Reading> {
        if let Turn::Between(_, reading) = &self.turn { Some(reading) } else { None }
    }

    /// When there is something to do.
    pub fn due(&self, client: &Client) -> Option<u64> {
        let turn = match &self.turn {
            Turn::Ordered { due, .. } => Some(*due),
            Turn::Between(_, reading) => reading.due(client),
            Turn::Agent => client.late_until(),
            Turn::Each(_) => None,
        };
        [self.server.handover.due(), turn].into_iter().flatten().min()
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        let turn = match &self.turn {
            Turn::Each(exchange) => exchange.memory(),
            Turn::Between(exchange, reading) => exchange.memory() + reading.memory(),
            Turn::Agent | Turn::Ordered { .. } => 0,
        };
        size_of::<Self>() + turn
    }

    /// Takes an acceptable segment of the client.
    pub fn on_client(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        news: &News,
    ) -> Next<Box<Serving>> {
        if self.asks_too_much(client, news.has_come) {
            // The server would not answer it, or the rules could not read it.
            return Next::End(Some(self.server.end()));
        }
        if self.asks_too_late(client) {
            // As the server would: no other may answer behind its end.
            client.terms.service.counters.resets.add(1);
            self.server.abort(client, ctx);
            return Next::Over;
        }
        if let Turn::Between(_, reading) = &mut self.turn
            && !client.request.ready().is_empty()
            && !segment.payload().is_empty()
        {
            let outcome = reading.read_or_acknowledge(client, ctx, segment, news);
            return self.follow(client, ctx, outcome);
        }
        if let Some(refusal) = self.follow_request(client) {
            return Next::Refuse(Some(self.server.end()), refusal);
        }
        if !self.advance(client, ctx) {
            self.hand_on_again(client, ctx, segment);
        }
        self.go_on(client, ctx)
    }

    /// Passes on a segment that brings nothing new in order.
    fn hand_on_again(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let is_beyond = client.request.end().is_before(segment.seq()) && self.exchange().is_none();
        let server = &mut self.server;
        if is_beyond {
            server.pass(client, ctx, segment, segment.seq());
        } else if is_bare(segment) {
            server.pass(client, ctx, segment, segment.seq().earlier(server.handover.next));
        } else if server.repeat(client, ctx, segment) {
        } else if segment.seq().is_before(client.acknowledged()) {
            // The client has not got the acknowledgement of this segment.
            client.acknowledge(ctx);
        } else {
            server.acknowledge(client, ctx);
        }
    }

    /// Answers a client's segment that is not acceptable: a keepalive is the server's to answer.
    pub fn challenge_client(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if is_bare(segment) && segment.seq().is_before(client.acknowledged()) {
            let seq = segment.seq().earlier(self.server.handover.next);
            self.server.pass(client, ctx, segment, seq);
        } else {
            client.challenge(ctx, segment);
        }
    }

    /// Takes an acceptable segment of the server.
    pub fn on_server(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
    ) -> Next<Box<Serving>> {
        let limit = self.limit(client);
        if !self.server.take_acknowledgement(client, ctx, segment, limit) {
            self.advance(client, ctx);
            return self.go_on(client, ctx);
        }
        if self.server.is_swallowed(segment) {
            self.server.acknowledge(client, ctx);
            return Next::Stay(self);
        }
        let Some(progress) = self.take_data(segment) else {
            // There is no room for it; it comes again.
            return Next::Stay(self);
        };
        if let Progress::Refused(refusal) = progress {
            return Next::Refuse(Some(self.server.end()), refusal);
        }
        self.server.pass_to_client(client, ctx, segment);
        if progress == Progress::Opaque {
            self.turn = Turn::Agent;
        }
        // What the client's next bytes are may depend on what the server has sent.
        if let Some(refusal) = self.follow_request(client) {
            return Next::Refuse(Some(self.server.end()), refusal);
        }
        self.advance(client, ctx);
        self.go_on(client, ctx)
    }

    /// Takes a reset of the server, which the client hears as well.
    pub fn on_reset(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.server.pass_to_client(client, ctx, segment);
        let counters = &client.terms.service.counters;
        counters.resets.add(1);
        counters.lost.add(u64::from(self.server.owes(client)));
    }

    /// Answers a server's segment that is not acceptable: a keepalive is the client's to answer.
    pub fn challenge_server(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.server.is_keepalive(client, segment) {
            self.server.write_to_client(client, ctx, segment);
        } else {
            self.server.challenge(client, ctx, segment);
        }
    }

    /// Takes a server's data: what comes of the response, or `None` when it cannot be taken now.
    fn take_data(&mut self, segment: &Segment<'_>) -> Option<Progress> {
        let mut progress = Progress::More;
        match &mut self.turn {
            Turn::Each(exchange) | Turn::Between(exchange, _) => {
                progress = exchange.take(segment.seq(), segment.payload())?;
                self.server.set_next(exchange.response.end());
            }
            Turn::Agent | Turn::Ordered { .. } => self.server.take_data(segment),
        }
        self.server.fin_seen |= segment.has(FIN);
        Some(progress)
    }

    /// Looks at what may be handed on of the request; a refusal if it is not to go on.
    fn follow_request(&mut self, client: &Client) -> Option<Refusal> {
        let Turn::Each(exchange) = &mut self.turn else { return None };
        match exchange.follow_request(&client.request) {
            Progress::Refused(refusal) => return Some(refusal),
            Progress::Opaque => self.turn = Turn::Agent,
            Progress::More | Progress::Part(_) | Progress::Ended { .. } | Progress::Last => {}
        }
        None
    }

    /// No further request can come, and all of this one is the server's: it is the last that the connection meets.
    fn settle(&mut self, client: &Client) {
        let Some(exchange) = self.exchange() else { return };
        if client.is_finished() && exchange.is_asked && exchange.limit == client.request.end() {
            self.turn = Turn::Agent;
        }
    }

    /// Whether the client asks for more when it knows that the server has ended the connection.
    fn asks_too_late(&self, client: &Client) -> bool {
        let knows = self.server.fin_seen && client.has_all();
        knows && self.exchange().is_some_and(|exchange| exchange.limit.is_before(client.request.end()))
    }

    /// Whether the client asks for more where nothing more may follow, although the server has not ended the connection.
    fn asks_too_much(&self, client: &Client, has_come: bool) -> bool {
        let exchange = self.exchange();
        !self.server.fin_seen
            && client.has_all()
            && exchange.is_some_and(|exchange| exchange.asks_too_much(&client.request, has_come))
    }

    /// Asks the data plane to take over, if it may, and hands on what may be handed on. True when the server was sent something.
    fn advance(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> bool {
        self.settle(client);
        self.wait_for_window(client, ctx);
        self.take_turn(client, ctx);
        let limit = self.limit(client);
        self.server.hand_on(client, ctx, limit)
    }

    /// What a server's closed window holds up waits in the agent, which owns it for that: it takes the server's word that the window
    /// opens, and probes it in case that word is lost. The client would only repeat itself.
    fn wait_for_window(&self, client: &mut Client, ctx: &mut Context<'_>) {
        let limit = self.limit(client);
        let is_held_up = self.server.handover.is_closed() && self.server.handover.next.is_before(limit);
        let is_the_agents = !matches!(self.turn, Turn::Ordered { .. });
        if is_held_up && is_the_agents && client.owned.is_before(limit) {
            client.own(ctx);
        }
    }

    /// Asks the data plane to take over, if the agent owes nothing to either side. The data plane looks at no acknowledgement, so the agent
    /// waits while a late segment of a server that the connection has left could still become part of what the client receives.
    fn take_turn(&mut self, client: &Client, ctx: &mut Context<'_>) {
        let owes = self.server.owes(client) || client.speech.is_some();
        if matches!(self.turn, Turn::Agent) && !owes && !self.may_take_late(client, ctx.now) {
            self.send_order(client, ctx, 1);
        }
    }

    /// Whether the client would take a late segment of a left server for this server's: the next number that it expects is among that
    /// server's, and this server has not ended.
    fn may_take_late(&self, client: &Client, now: u64) -> bool {
        let has_end = self.server.fin_seen && client.has_all();
        !has_end && client.is_among_left(now, self.server.acknowledged(client))
    }

    fn send_order(&mut self, client: &Client, ctx: &mut Context<'_>, sent: u32) {
        let order = self.order(client);
        ctx.out.push_with(|frame| order.write(&ctx.link, frame));
        self.turn = Turn::Ordered { due: ctx.now + (REPEAT << (sent - 1)), sent };
    }

    /// The order to take the connection over.
    fn order(&self, client: &Client) -> Order {
        let terms = &client.terms;
        let (delta, shift, client_shift) = self.server.translation();
        Order {
            status: Status::Order,
            client: terms.client,
            service: terms.service.address,
            delta,
            shift,
            remember: match self.sticky {
                Sticky::Client => Remember::Client,
                Sticky::Connection if terms.service.guess => Remember::Guess,
                _ => Remember::Nothing,
            },
            generation: terms.generation,
            turn: order::Turn::Spliced,
            client_shift,
        }
    }

    /// Takes the data plane's confirmation.
    pub fn on_order(self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>, status: Status) -> Next<Box<Serving>> {
        if !matches!(self.turn, Turn::Ordered { .. }) || status == Status::Order {
            return Next::Stay(self);
        }
        let counters = &client.terms.service.counters;
        match status {
            Status::Applied => counters.spliced.add(1),
            _ => counters.orders_failed.add(1),
        }
        if status == Status::NoConnection {
            self.server.abort(client, ctx);
        }
        Next::Over
    }

    /// Goes on to the next request, when this one is answered and the client has the answer.
    fn go_on(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        let Turn::Each(exchange) = &self.turn else { return self.part_if_draining(client, ctx) };
        let is_done =
            exchange.is_asked && exchange.answered == Some(true) && self.server.handover.una == exchange.limit;
        let has_all = !client.ack.is_before(self.server.to_client(self.server.next));
        if !is_done || !has_all || self.server.fin_seen {
            return self.part_if_draining(client, ctx);
        }
        let Turn::Each(exchange) = std::mem::replace(&mut self.turn, Turn::Agent) else { return Next::Stay(self) };
        let mut reading = Reading::idle(client, ctx.now);
        let outcome = if client.request.ready().is_empty() { Outcome::More } else { reading.read(client, ctx) };
        self.turn = Turn::Between(exchange, reading);
        match outcome {
            Outcome::More => self.part_if_draining(client, ctx),
            outcome => self.follow(client, ctx, outcome),
        }
    }

    /// Does what the rules say of the next request.
    fn follow(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>, outcome: Outcome) -> Next<Box<Serving>> {
        match outcome {
            Outcome::More => Next::Stay(self),
            Outcome::Refuse(refusal) => Next::Refuse(Some(self.server.end()), refusal),
            // A decision that holds for the connection stays: later requests are only asked about.
            Outcome::Route(route) if route.group == self.server.group || self.sticky != Sticky::None => {
                let Route { sticky, framing, .. } = route;
                self.turn = Turn::new(framing, client, &self.server);
                if self.sticky == Sticky::None {
                    self.sticky = sticky;
                }
                if let Some(refusal) = self.follow_request(client) {
                    return Next::Refuse(Some(self.server.end()), refusal);
                }
                self.advance(client, ctx);
                Next::Stay(self)
            }
            Outcome::Route(route) => {
                client.note_left(ctx.now, self.server.opened, self.server.next);
                client.leave(ctx, Some(self.server.end()));
                Next::Ask { route, has_left: true }
            }
        }
    }

    fn part_if_draining(self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if ctx.is_draining && self.exchange().is_some() { self.part(client, ctx) } else { Next::Stay(self) }
    }

    /// The agent takes no new work: the connection ends if no request is under way.
    pub fn part(self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if self.is_left(client) {
            self.server.abort(client, ctx);
            return Next::Over;
        }
        let is_idle = self.reading().is_some_and(Reading::is_idle) && client.request.islands().next().is_none();
        if is_idle && !self.server.fin_seen { Next::End(Some(self.server.end())) } else { Next::Stay(self) }
    }

    /// Whether the client has the answer, and the server's end, and has not ended its own side.
    fn is_left(&self, client: &Client) -> bool {
        let Some(exchange) = self.exchange() else { return false };
        let is_answered = exchange.answered.is_some() && exchange.limit == client.request.end();
        self.server.fin_seen && is_answered && client.fin.is_none() && client.has_all()
    }

    /// Does what is due.
    pub fn on_time(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if let Turn::Between(_, reading) = &mut self.turn
            && let Some(refusal) = reading.on_time(client, ctx)
        {
            return Next::Refuse(Some(self.server.end()), refusal);
        }
        let limit = self.limit(client);
        if !self.server.on_time(client, ctx, limit) {
            self.server.abort(client, ctx);
            return Next::Over;
        }
        if let Turn::Ordered { due, sent } = self.turn
            && due <= ctx.now
        {
            let counters = &client.terms.service.counters;
            counters.orders_repeated.add(1);
            if sent == ORDERS {
                // Whether it was applied is not known; what comes to the agent from now on is a stray.
                counters.orders_failed.add(1);
                return Next::Over;
            }
            self.send_order(client, ctx, sent + 1);
        }
        client.forget_left(ctx.now);
        self.take_turn(client, ctx);
        Next::Stay(self)
    }

    /// Asserts what holds for every turn.
    pub fn check(&self, client: &Client) {
        self.server.check(client);
        match &self.turn {
            Turn::Agent | Turn::Each(_) => {}
            Turn::Ordered { .. } => {
                assert!(!self.server.owes(client) && client.speech.is_none(), "the data plane repeats nothing");
            }
            Turn::Between(exchange, _) => {
                assert!(exchange.is_asked && exchange.answered == Some(true), "one exchange at a time");
                assert!(self.server.handover.una == exchange.limit, "the next request is not this one's");
            }
        }
    }
}

impl Turn {
    fn new(framing: Option<Box<dyn Framing>>, client: &Client, server: &Server) -> Turn {
        framing.map_or(Turn::Agent, |framing| Turn::Each(Exchange::new(framing, client.request.base(), server.next)))
    }
}
