//! Forwards and translates between the client and a server that has accepted the connection. It ends when the data
//! plane takes over, or with the connection where each request is decided separately.

use super::client::{Client, ClientUpdate};
use super::context::Context;
use super::exchange::Exchange;
use super::next::Next;
use super::reading::{ReadOutcome, Reading};
use super::server::{Server, is_bare};
use crate::order::{self, ORDERS, Order, REPEAT, Remember, Status};
use crate::policy::{Assignment, Framing, Progress, Rejection, Sticky};
use crate::seq::Seq;
use crate::wire::Segment;
use crate::wire::flags::FIN;

/// A connection that has a server.
pub struct Serving {
    pub server: Server,
    sticky: Sticky,
    phase: Phase,
}

/// Which side translates, and until when.
enum Phase {
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
        let phase = Phase::new(framing, client, &server);
        let mut serving = Serving { server, sticky, phase };
        if let Some(rejection) = serving.parse_request(client) {
            return Next::Refuse(Some(serving.server.as_reset()), rejection);
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
        let mut serving = Serving { server, sticky, phase: exchange.map_or(Phase::Agent, Phase::Each) };
        if let Some(rejection) = serving.parse_request(client) {
            return Next::Refuse(Some(serving.server.as_reset()), rejection);
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
        match &self.phase {
            Phase::Each(exchange) | Phase::Between(exchange, _) => Some(exchange),
            Phase::Agent | Phase::Ordered { .. } => None,
        }
    }

    /// The next request, if it is being read.
    pub fn reading(&self) -> Option<&Reading> {
        if let Phase::Between(_, reading) = &self.phase { Some(reading) } else { None }
    }

    /// The time of the next timer.
    pub fn due(&self, client: &Client) -> Option<u64> {
        let phase = match &self.phase {
            Phase::Ordered { due, .. } => Some(*due),
            Phase::Between(_, reading) => reading.due(client),
            Phase::Agent => client.late_until(),
            Phase::Each(_) => None,
        };
        [self.server.sender.due(), phase].into_iter().flatten().min()
    }

    /// Returns the bytes of memory in use.
    pub fn memory(&self) -> usize {
        let phase = match &self.phase {
            Phase::Each(exchange) => exchange.memory(),
            Phase::Between(exchange, reading) => exchange.memory() + reading.memory(),
            Phase::Agent | Phase::Ordered { .. } => 0,
        };
        size_of::<Self>() + phase
    }

    /// Processes an acceptable segment of the client.
    pub fn on_client(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        segment: &Segment<'_>,
        update: &ClientUpdate,
    ) -> Next<Box<Serving>> {
        if self.requests_after_last(client, update.has_new_data) {
            // The server would not answer this request, or the rules could not read the one behind it.
            return Next::Close(Some(self.server.as_reset()));
        }
        if self.requests_after_close(client) {
            // The client is reset, as the server would do: no other server may answer behind this server's FIN.
            client.terms.service.counters.resets.add(1);
            self.server.abort(client, ctx);
            return Next::Over;
        }
        if let Phase::Between(_, reading) = &mut self.phase
            && !client.request.ready().is_empty()
            && !segment.payload().is_empty()
        {
            let outcome = reading.read_or_acknowledge(client, ctx, segment, update);
            return self.apply(client, ctx, outcome);
        }
        if let Some(rejection) = self.parse_request(client) {
            return Next::Refuse(Some(self.server.as_reset()), rejection);
        }
        if !self.advance(client, ctx) {
            self.pass_on_repeated(client, ctx, segment);
        }
        self.next_request(client, ctx)
    }

    /// Passes on a segment that brings no new bytes in order.
    fn pass_on_repeated(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let is_beyond = client.request.end().is_before(segment.seq()) && self.exchange().is_none();
        let server = &mut self.server;
        if is_beyond {
            server.pass(client, ctx, segment, segment.seq());
        } else if is_bare(segment) {
            server.pass(client, ctx, segment, segment.seq().earlier(server.sender.next));
        } else if server.retransmit(client, ctx, segment) {
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
            let seq = segment.seq().earlier(self.server.sender.next);
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
            return self.next_request(client, ctx);
        }
        if self.server.is_discarded(segment) {
            self.server.acknowledge(client, ctx);
            return Next::Stay(self);
        }
        let Some(progress) = self.take_data(segment) else {
            // There is no room for it now; the server retransmits it.
            return Next::Stay(self);
        };
        if let Progress::Refused(rejection) = progress {
            return Next::Refuse(Some(self.server.as_reset()), rejection);
        }
        self.server.pass_to_client(client, ctx, segment);
        if progress == Progress::Opaque {
            self.phase = Phase::Agent;
        }
        // The meaning of the client's next bytes may depend on what the server has sent.
        if let Some(rejection) = self.parse_request(client) {
            return Next::Refuse(Some(self.server.as_reset()), rejection);
        }
        self.advance(client, ctx);
        self.next_request(client, ctx)
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
        match &mut self.phase {
            Phase::Each(exchange) | Phase::Between(exchange, _) => {
                progress = exchange.take(segment.seq(), segment.payload())?;
                self.server.set_next(exchange.response.end());
            }
            Phase::Agent | Phase::Ordered { .. } => self.server.take_data(segment),
        }
        self.server.fin_forwarded |= segment.has(FIN);
        Some(progress)
    }

    /// Finds which bytes of the request may be forwarded. Returns a rejection if the request must not continue.
    fn parse_request(&mut self, client: &Client) -> Option<Rejection> {
        let Phase::Each(exchange) = &mut self.phase else { return None };
        match exchange.parse_request(&client.request) {
            Progress::Refused(rejection) => return Some(rejection),
            Progress::Opaque => self.phase = Phase::Agent,
            Progress::More | Progress::Partial(_) | Progress::Ended { .. } | Progress::Last => {}
        }
        None
    }

    /// Allows the splice when no further request can come: the client has sent its FIN, and this request is complete.
    fn finish_exchange(&mut self, client: &Client) {
        let Some(exchange) = self.exchange() else { return };
        if client.is_finished() && exchange.request_complete && exchange.limit == client.request.end() {
            self.phase = Phase::Agent;
        }
    }

    /// Whether the client sends another request after it has received the server's FIN.
    fn requests_after_close(&self, client: &Client) -> bool {
        let has_server_fin = self.server.fin_forwarded && client.has_all();
        has_server_fin && self.exchange().is_some_and(|exchange| exchange.limit.is_before(client.request.end()))
    }

    /// Whether the client sends another request where none may follow, although the server has not closed.
    fn requests_after_last(&self, client: &Client, has_new_data: bool) -> bool {
        let exchange = self.exchange();
        !self.server.fin_forwarded
            && client.has_all()
            && exchange.is_some_and(|exchange| exchange.requests_after_last(&client.request, has_new_data))
    }

    /// Sends the splice order if that is possible, and forwards bytes. Returns whether the server was sent anything.
    fn advance(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> bool {
        self.finish_exchange(client);
        self.acknowledge_held_back(client, ctx);
        self.order_splice(client, ctx);
        let limit = self.limit(client);
        self.server.forward(client, ctx, limit)
    }

    /// Acknowledges the client's bytes that a closed window of the server holds back, so that the client need not
    /// retransmit them. The agent sends them when the server opens its window, and probes the window in case that
    /// segment is lost.
    fn acknowledge_held_back(&self, client: &mut Client, ctx: &mut Context<'_>) {
        let limit = self.limit(client);
        let is_blocked = self.server.sender.is_closed() && self.server.sender.next.is_before(limit);
        let agent_translates = !matches!(self.phase, Phase::Ordered { .. });
        if is_blocked && agent_translates && client.owned.is_before(limit) {
            client.acknowledge_received(ctx);
        }
    }

    /// Sends the splice order, if the agent has nothing to retransmit to either side. The data plane checks no
    /// acknowledgement numbers, so the agent waits while the client could still take a late segment of a former
    /// server for data.
    fn order_splice(&mut self, client: &Client, ctx: &mut Context<'_>) {
        let owes = self.server.owes(client) || client.own_bytes.is_some();
        if matches!(self.phase, Phase::Agent) && !owes && !self.may_accept_late_segment(client, ctx.now) {
            self.send_order(client, ctx, 1);
        }
    }

    /// Whether the client would accept a late segment of a former server as this server's: the next number that it
    /// expects is among that server's, and this server has not closed.
    fn may_accept_late_segment(&self, client: &Client, now: u64) -> bool {
        let has_end = self.server.fin_forwarded && client.has_all();
        !has_end && client.belongs_to_former_server(now, self.server.acknowledged(client))
    }

    fn send_order(&mut self, client: &Client, ctx: &mut Context<'_>, sent: u32) {
        let order = self.order(client);
        ctx.out.push_with(|frame| order.write(&ctx.link, frame));
        self.phase = Phase::Ordered { due: ctx.now + (REPEAT << (sent - 1)), sent };
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
        if !matches!(self.phase, Phase::Ordered { .. }) || status == Status::Order {
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
    fn next_request(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        let Phase::Each(exchange) = &self.phase else { return self.drain_if_requested(client, ctx) };
        let is_done = exchange.request_complete
            && exchange.response_complete == Some(true)
            && self.server.sender.una == exchange.limit;
        let has_all = !client.ack.is_before(self.server.to_client(self.server.next));
        if !is_done || !has_all || self.server.fin_forwarded {
            return self.drain_if_requested(client, ctx);
        }
        let Phase::Each(exchange) = std::mem::replace(&mut self.phase, Phase::Agent) else { return Next::Stay(self) };
        let mut reading = Reading::idle(client, ctx.now);
        let outcome = if client.request.ready().is_empty() { ReadOutcome::More } else { reading.read(client, ctx) };
        self.phase = Phase::Between(exchange, reading);
        match outcome {
            ReadOutcome::More => self.drain_if_requested(client, ctx),
            outcome => self.apply(client, ctx, outcome),
        }
    }

    /// Applies the rules' decision about the next request.
    fn apply(
        mut self: Box<Self>,
        client: &mut Client,
        ctx: &mut Context<'_>,
        outcome: ReadOutcome,
    ) -> Next<Box<Serving>> {
        match outcome {
            ReadOutcome::More => Next::Stay(self),
            ReadOutcome::Refuse(rejection) => Next::Refuse(Some(self.server.as_reset()), rejection),
            // A decision for the whole connection stays in force: later requests are only checked for a refusal.
            ReadOutcome::Assignment(assignment)
                if assignment.group == self.server.group || self.sticky != Sticky::None =>
            {
                let Assignment { sticky, framing, .. } = assignment;
                self.phase = Phase::new(framing, client, &self.server);
                if self.sticky == Sticky::None {
                    self.sticky = sticky;
                }
                if let Some(rejection) = self.parse_request(client) {
                    return Next::Refuse(Some(self.server.as_reset()), rejection);
                }
                self.advance(client, ctx);
                Next::Stay(self)
            }
            ReadOutcome::Assignment(assignment) => {
                client.record_former_server(ctx.now, self.server.opened, self.server.next);
                client.leave(ctx, Some(self.server.as_reset()));
                Next::Connect { assignment, has_former_server: true }
            }
        }
    }

    fn drain_if_requested(self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if ctx.is_draining && self.exchange().is_some() { self.drain(client, ctx) } else { Next::Stay(self) }
    }

    /// Ends the connection if no request is under way, because the agent is draining.
    pub fn drain(self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if self.is_abandoned(client) {
            self.server.abort(client, ctx);
            return Next::Over;
        }
        let is_idle = self.reading().is_some_and(Reading::is_idle) && client.request.ranges().next().is_none();
        if is_idle && !self.server.fin_forwarded { Next::Close(Some(self.server.as_reset())) } else { Next::Stay(self) }
    }

    /// Whether the client has the answer and the server's FIN, but has not closed its own side.
    fn is_abandoned(&self, client: &Client) -> bool {
        let Some(exchange) = self.exchange() else { return false };
        let is_answered = exchange.response_complete.is_some() && exchange.limit == client.request.end();
        self.server.fin_forwarded && is_answered && client.fin.is_none() && client.has_all()
    }

    /// Runs expired timers.
    pub fn on_time(mut self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if let Phase::Between(_, reading) = &mut self.phase
            && let Some(rejection) = reading.on_time(client, ctx)
        {
            return Next::Refuse(Some(self.server.as_reset()), rejection);
        }
        let limit = self.limit(client);
        if !self.server.on_time(client, ctx, limit) {
            self.server.abort(client, ctx);
            return Next::Over;
        }
        if let Phase::Ordered { due, sent } = self.phase
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
        client.expire_former_servers(ctx.now);
        self.order_splice(client, ctx);
        Next::Stay(self)
    }

    /// Asserts the invariants of every phase.
    pub fn check(&self, client: &Client) {
        self.server.check(client);
        match &self.phase {
            Phase::Agent | Phase::Each(_) => {}
            Phase::Ordered { .. } => {
                assert!(!self.server.owes(client) && client.own_bytes.is_none(), "the data plane repeats nothing");
            }
            Phase::Between(exchange, _) => {
                assert!(
                    exchange.request_complete && exchange.response_complete == Some(true),
                    "one exchange at a time"
                );
                assert!(self.server.sender.una == exchange.limit, "the next request is not this one's");
            }
        }
    }
}

impl Phase {
    fn new(framing: Option<Box<dyn Framing>>, client: &Client, server: &Server) -> Phase {
        framing.map_or(Phase::Agent, |framing| Phase::Each(Exchange::new(framing, client.request.base(), server.next)))
    }
}
