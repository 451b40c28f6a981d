//! Forwards and translates between the client and a server that has accepted the connection. It ends when the data
//! plane takes over, or with the connection where each request is decided separately.

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

/// A connection that has a server.
pub struct Serving {
    pub server: Server,
    sticky: Sticky,
    turn: Turn,
}

/// Which side translates, and until when.
enum Turn {
    /// The agent, until the server has acknowledged all bytes that the agent has.
    Agent,
    /// The agent has sent a splice order to the data plane; `due` is when it repeats the order, `sent` the number of
    /// orders.
    Ordered { due: u64, sent: u32 },
    /// The agent, for this request and its response.
    Each(Exchange),
    /// The agent: the response is complete, and the next request is being read.
    Between(Exchange, Reading),
}

impl Serving {
    /// Begins with a server. Sends the splice order at once, if the agent has acknowledged nothing.
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

    /// Continues with a server to which a dialogue was replayed; its further bytes are the client's. With an
    /// exchange, the agent reads all further commands. `acknowledges`: the server is sent an ACK if nothing else is
    /// sent.
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

    /// The client's bytes before this number are for this server.
    fn limit(&self, client: &Client) -> Seq {
        self.exchange().map_or(client.request.end(), |exchange| exchange.limit)
    }

    /// The current exchange, where each request is decided separately.
    fn exchange(&self) -> Option<&Exchange> {
        match &self.turn {
            Turn::Each(exchange) | Turn::Between(exchange, _) => Some(exchange),
            Turn::Agent | Turn::Ordered { .. } => None,
        }
    }

    /// The next request, if it is being read.
    pub fn reading(&self) -> Option<&Reading> {
        if let Turn::Between(_, reading) = &self.turn { Some(reading) } else { None }
    }

    /// The time of the next timer.
    pub fn due(&self, client: &Client) -> Option<u64> {
        let turn = match &self.turn {
            Turn::Ordered { due, .. } => Some(*due),
            Turn::Between(_, reading) => reading.due(client),
            Turn::Agent => client.late_until(),
            Turn::Each(_) => None,
        };
        [self.server.handover.due(), turn].into_iter().flatten().min()
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let turn = match &self.turn {
            Turn::Each(exchange) => exchange.memory(),
            Turn::Between(exchange, reading) => exchange.memory() + reading.memory(),
            Turn::Agent | Turn::Ordered { .. } => 0,
        };
        size_of::<Self>() + turn
    }

    /// Processes an acceptable segment of the client.
    pub fn on_client(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        news: &News,
    ) -> Next<Box<Serving>> {
        if self.asks_too_much(client, news.has_come) {
            // The server would not answer this request, or the rules could not read the one behind it.
            return Next::End(Some(self.server.end()));
        }
        if self.asks_too_late(client) {
            // Reset, as the server would: no other server may answer behind its end.
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

    /// Passes on a segment that brings no new bytes in order.
    fn hand_on_again(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let is_beyond = client.request.end().is_before(segment.seq()) && self.exchange().is_none();
        let server = &mut self.server;
        if is_beyond {
            server.pass(client, ctx, segment, segment.seq());
        } else if is_bare(segment) {
            server.pass(client, ctx, segment, segment.seq().earlier(server.handover.next));
        } else if server.repeat(client, ctx, segment) {
        } else if segment.seq().is_before(client.acknowledged()) {
            // The client has not received the ACK of this segment.
            client.acknowledge(ctx);
        } else {
            server.acknowledge(client, ctx);
        }
    }

    /// Answers a client's segment that is not acceptable; a keepalive is passed on, for the server to answer.
    pub fn challenge_client(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if is_bare(segment) && segment.seq().is_before(client.acknowledged()) {
            let seq = segment.seq().earlier(self.server.handover.next);
            self.server.pass(client, ctx, segment, seq);
        } else {
            client.challenge(ctx, segment);
        }
    }

    /// Processes an acceptable segment of the server.
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
            // There is no room for it now; the server retransmits it.
            return Next::Stay(self);
        };
        if let Progress::Refused(refusal) = progress {
            return Next::Refuse(Some(self.server.end()), refusal);
        }
        self.server.pass_to_client(client, ctx, segment);
        if progress == Progress::Opaque {
            self.turn = Turn::Agent;
        }
        // The meaning of the client's next bytes may depend on what the server has sent.
        if let Some(refusal) = self.follow_request(client) {
            return Next::Refuse(Some(self.server.end()), refusal);
        }
        self.advance(client, ctx);
        self.go_on(client, ctx)
    }

    /// Handles a reset of the server, which is passed on to the client.
    pub fn on_reset(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.server.pass_to_client(client, ctx, segment);
        let counters = &client.terms.service.counters;
        counters.resets.add(1);
        counters.lost.add(u64::from(self.server.owes(client)));
    }

    /// Answers a server's segment that is not acceptable; a keepalive is passed on, for the client to answer.
    pub fn challenge_server(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.server.is_keepalive(client, segment) {
            self.server.write_to_client(client, ctx, segment);
        } else {
            self.server.challenge(client, ctx, segment);
        }
    }

    /// Takes a server's data. Returns how far the response has come, or `None` when there is no room now.
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

    /// Finds which bytes of the request may be forwarded. Returns a rejection if the request must not continue.
    fn follow_request(&mut self, client: &Client) -> Option<Refusal> {
        let Turn::Each(exchange) = &mut self.turn else { return None };
        match exchange.follow_request(&client.request) {
            Progress::Refused(refusal) => return Some(refusal),
            Progress::Opaque => self.turn = Turn::Agent,
            Progress::More | Progress::Part(_) | Progress::Ended { .. } | Progress::Last => {}
        }
        None
    }

    /// Allows the splice when no further request can come: the client has sent its FIN, and this request is complete.
    fn settle(&mut self, client: &Client) {
        let Some(exchange) = self.exchange() else { return };
        if client.is_finished() && exchange.is_asked && exchange.limit == client.request.end() {
            self.turn = Turn::Agent;
        }
    }

    /// Whether the client sends another request after it has received the server's FIN.
    fn asks_too_late(&self, client: &Client) -> bool {
        let knows = self.server.fin_seen && client.has_all();
        knows && self.exchange().is_some_and(|exchange| exchange.limit.is_before(client.request.end()))
    }

    /// Whether the client sends another request where none may follow, although the server has not closed.
    fn asks_too_much(&self, client: &Client, has_come: bool) -> bool {
        let exchange = self.exchange();
        !self.server.fin_seen
            && client.has_all()
            && exchange.is_some_and(|exchange| exchange.asks_too_much(&client.request, has_come))
    }

    /// Sends the splice order if that is possible, and forwards bytes. Returns whether the server was sent anything.
    fn advance(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> bool {
        self.settle(client);
        self.wait_for_window(client, ctx);
        self.take_turn(client, ctx);
        let limit = self.limit(client);
        self.server.hand_on(client, ctx, limit)
    }

    /// Acknowledges the client's bytes that a closed window of the server holds back, so that the client need not
    /// retransmit them. The agent sends them when the server opens its window, and probes the window in case that
    /// segment is lost.
    fn wait_for_window(&self, client: &mut Client, ctx: &mut Context<'_>) {
        let limit = self.limit(client);
        let is_held_up = self.server.handover.is_closed() && self.server.handover.next.is_before(limit);
        let is_the_agents = !matches!(self.turn, Turn::Ordered { .. });
        if is_held_up && is_the_agents && client.owned.is_before(limit) {
            client.own(ctx);
        }
    }

    /// Sends the splice order, if the agent has nothing to retransmit to either side. The data plane checks no
    /// acknowledgement numbers, so the agent waits while the client could still take a late segment of a former
    /// server for data.
    fn take_turn(&mut self, client: &Client, ctx: &mut Context<'_>) {
        let owes = self.server.owes(client) || client.speech.is_some();
        if matches!(self.turn, Turn::Agent) && !owes && !self.may_take_late(client, ctx.now) {
            self.send_order(client, ctx, 1);
        }
    }

    /// Whether the client would accept a late segment of a former server as this server's: the next number that it
    /// expects is among that server's, and this server has not closed.
    fn may_take_late(&self, client: &Client, now: u64) -> bool {
        let has_end = self.server.fin_seen && client.has_all();
        !has_end && client.is_among_left(now, self.server.acknowledged(client))
    }

    fn send_order(&mut self, client: &Client, ctx: &mut Context<'_>, sent: u32) {
        let order = self.order(client);
        ctx.out.push_with(|frame| order.write(&ctx.link, frame));
        self.turn = Turn::Ordered { due: ctx.now + (REPEAT << (sent - 1)), sent };
    }

    /// Builds the order by which the data plane takes the connection over.
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

    /// Processes the data plane's answer to the order.
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

    /// Goes on to the next request, once this one is answered and the client has acknowledged the answer.
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

    /// Applies the rules' decision about the next request.
    fn follow(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>, outcome: Outcome) -> Next<Box<Serving>> {
        match outcome {
            Outcome::More => Next::Stay(self),
            Outcome::Refuse(refusal) => Next::Refuse(Some(self.server.end()), refusal),
            // A decision for the whole connection stays in force: later requests are only checked for a refusal.
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

    /// Ends the connection if no request is under way, because the agent is draining.
    pub fn part(self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if self.is_left(client) {
            self.server.abort(client, ctx);
            return Next::Over;
        }
        let is_idle = self.reading().is_some_and(Reading::is_idle) && client.request.islands().next().is_none();
        if is_idle && !self.server.fin_seen { Next::End(Some(self.server.end())) } else { Next::Stay(self) }
    }

    /// Whether the client has the answer and the server's FIN, but has not closed its own side.
    fn is_left(&self, client: &Client) -> bool {
        let Some(exchange) = self.exchange() else { return false };
        let is_answered = exchange.answered.is_some() && exchange.limit == client.request.end();
        self.server.fin_seen && is_answered && client.fin.is_none() && client.has_all()
    }

    /// Runs expired timers.
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
                // Whether the order was applied is unknown; later segments at the agent count as strays.
                counters.orders_failed.add(1);
                return Next::Over;
            }
            self.send_order(client, ctx, sent + 1);
        }
        client.forget_left(ctx.now);
        self.take_turn(client, ctx);
        Next::Stay(self)
    }

    /// Asserts the invariants of every phase.
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
