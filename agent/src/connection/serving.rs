//! Forwards and translates segments between the client and a server that has accepted the connection. This state ends
//! when the data plane takes over. As long as the agent has to read the requests one by one ([`Exchange`]), the data
//! plane does not take over.

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

/// Which component translates, and until when.
enum Phase {
    /// The agent translates until it can send the splice order ([`Serving::order_splice`]).
    Agent,
    /// The agent has sent a splice order to the data plane; `due` is the time at which the agent repeats the order,
    /// `sent` the number of orders.
    Ordered { due: u64, sent: u32 },
    /// The agent translates this request and its response.
    Each(Exchange),
    /// The agent translates. The response is complete, and the agent reads the next request.
    Between(Exchange, Reading),
}

impl Serving {
    /// Begins to serve the client by a server: sends the splice order if it is already possible
    /// ([`Self::order_splice`]), and forwards the request.
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

    /// Continues with a server to which a mail dialogue was replayed; the server's further bytes are for the client. If
    /// there is an exchange, the agent reads all further commands. If `acknowledges` is true and no other segment is
    /// sent, the server receives an ACK.
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

    /// Returns the sequence number at which the client's bytes for this server end.
    fn limit(&self, client: &Client) -> Seq {
        self.exchange().map_or(client.request.end(), |exchange| exchange.limit)
    }

    /// Returns the current exchange, if the agent reads the requests one by one.
    fn exchange(&self) -> Option<&Exchange> {
        match &self.phase {
            Phase::Each(exchange) | Phase::Between(exchange, _) => Some(exchange),
            Phase::Agent | Phase::Ordered { .. } => None,
        }
    }

    /// Returns the state of the next request, if the agent is reading it.
    pub fn reading(&self) -> Option<&Reading> {
        if let Phase::Between(_, reading) = &self.phase { Some(reading) } else { None }
    }

    /// Returns the time of the next timer, if there is one.
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
            // The server would not answer this request, or the agent could not find the end of the last response.
            return Next::Close(Some(self.server.as_reset()));
        }
        if self.requests_after_close(client) {
            // The agent resets the client, as the server would. No other server may answer, because the client has
            // already received this server's FIN.
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

    /// Handles a client's segment after which the agent had no new bytes to send to the server: forwards the segment or
    /// the bytes that it repeats, or sends an ACK to client or server.
    fn pass_on_repeated(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let is_beyond = client.request.end().is_before(segment.seq()) && self.exchange().is_none();
        let server = &mut self.server;
        if is_beyond {
            server.pass(client, ctx, segment, segment.seq());
        } else if is_bare(segment) {
            server.pass(client, ctx, segment, segment.seq().earlier(server.sender.next));
        } else if server.retransmit(client, ctx, segment) {
        } else if segment.seq().is_before(client.acknowledged()) {
            // The agent's ACK of this segment has not reached the client.
            client.acknowledge(ctx);
        } else {
            server.acknowledge(client, ctx);
        }
    }

    /// Answers an unacceptable segment of the client. A keepalive is forwarded instead, because the server has to
    /// answer it.
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
            // The buffer has no space for the data now; the server retransmits it.
            return Next::Stay(self);
        };
        if let Progress::Refused(rejection) = progress {
            return Next::Refuse(Some(self.server.as_reset()), rejection);
        }
        self.server.pass_to_client(client, ctx, segment);
        if progress == Progress::Opaque {
            self.phase = Phase::Agent;
        }
        // Bytes of the client that arrived earlier may have waited for the server's answer, on which their meaning
        // depends.
        if let Some(rejection) = self.parse_request(client) {
            return Next::Refuse(Some(self.server.as_reset()), rejection);
        }
        self.advance(client, ctx);
        self.next_request(client, ctx)
    }

    /// Processes a reset of the server: forwards it to the client.
    pub fn on_reset(&self, client: &mut Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        self.server.pass_to_client(client, ctx, segment);
        let counters = &client.terms.service.counters;
        counters.resets.add(1);
        counters.lost.add(u64::from(self.server.owes(client)));
    }

    /// Answers an unacceptable segment of the server. A keepalive is forwarded instead, because the client has to
    /// answer it.
    pub fn challenge_server(&mut self, client: &Client, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        if self.server.is_keepalive(client, segment) {
            self.server.write_to_client(client, ctx, segment);
        } else {
            self.server.challenge(client, ctx, segment);
        }
    }

    /// Adds a server's data to the response. Returns the progress of the response, or `None` if there is no space for
    /// the data now.
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

    /// Determines which bytes of the request may be forwarded. Returns a rejection if the rules refuse the request.
    fn parse_request(&mut self, client: &Client) -> Option<Rejection> {
        let Phase::Each(exchange) = &mut self.phase else { return None };
        match exchange.parse_request(&client.request) {
            Progress::Refused(rejection) => return Some(rejection),
            Progress::Opaque => self.phase = Phase::Agent,
            Progress::More | Progress::Partial(_) | Progress::Ended { .. } | Progress::Last => {}
        }
        None
    }

    /// Allows the splice when no further request can follow: the client has sent its FIN, and this request is complete.
    fn finish_exchange(&mut self, client: &Client) {
        let Some(exchange) = self.exchange() else { return };
        if client.is_finished() && exchange.request_complete && exchange.limit == client.request.end() {
            self.phase = Phase::Agent;
        }
    }

    /// Returns whether the client sends another request after it has received the server's FIN.
    fn requests_after_close(&self, client: &Client) -> bool {
        let has_server_fin = self.server.fin_forwarded && client.has_all();
        has_server_fin && self.exchange().is_some_and(|exchange| exchange.limit.is_before(client.request.end()))
    }

    /// Returns whether the client sends another request although no request may follow the last response. Returns false
    /// if the server has closed its side.
    fn requests_after_last(&self, client: &Client, has_new_data: bool) -> bool {
        let exchange = self.exchange();
        !self.server.fin_forwarded
            && client.has_all()
            && exchange.is_some_and(|exchange| exchange.requests_after_last(&client.request, has_new_data))
    }

    /// Sends the splice order if it is possible, and forwards bytes of the client. Returns whether a segment was sent
    /// to the server.
    fn advance(&mut self, client: &mut Client, ctx: &mut Context<'_>) -> bool {
        self.finish_exchange(client);
        self.acknowledge_held_back(client, ctx);
        self.order_splice(client, ctx);
        let limit = self.limit(client);
        self.server.forward(client, ctx, limit)
    }

    /// Acknowledges the client's bytes that wait because the server's window is closed, so that the client need not
    /// retransmit them. The agent forwards them when the server opens its window. It also probes the window, in case
    /// the server's window update is lost.
    fn acknowledge_held_back(&self, client: &mut Client, ctx: &mut Context<'_>) {
        let limit = self.limit(client);
        let is_blocked = self.server.sender.is_closed() && self.server.sender.next.is_before(limit);
        let agent_translates = !matches!(self.phase, Phase::Ordered { .. });
        if is_blocked && agent_translates && client.owned.is_before(limit) {
            client.acknowledge_received(ctx);
        }
    }

    /// Sends the splice order if the phase is `Agent`, and the agent has nothing to retransmit to client or server. The
    /// data plane checks no acknowledgement numbers, so the agent waits as long as the client could mistake a late
    /// segment of a former server for data of this server.
    fn order_splice(&mut self, client: &Client, ctx: &mut Context<'_>) {
        let owes = self.server.owes(client) || client.own_bytes.is_some();
        if matches!(self.phase, Phase::Agent) && !owes && !self.may_accept_late_segment(client, ctx.now) {
            self.send_order(client, ctx, 1);
        }
    }

    /// Returns whether the client would accept a late segment of a former server as data of this server. This is
    /// possible if the next sequence number that the client expects is in the former server's range, and this server
    /// has not closed.
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

    /// Processes the data plane's answer to the splice order: the agent removes the connection. If the data plane has
    /// no entry of the connection, the agent resets client and server before.
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

    /// Begins to read the next request, once the server has answered this one and the client has acknowledged the
    /// response.
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
            // Unless `sticky` is `None`, the first decision applies to all later requests of the connection; the rules
            // can only refuse these requests.
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

    /// Called when the agent drains. Ends the connection if it waits for the first byte of its next request, or if only
    /// the client's FIN is missing. Any other connection continues.
    pub fn drain(self: Box<Self>, client: &mut Client, ctx: &mut Context<'_>) -> Next<Box<Serving>> {
        if self.is_abandoned(client) {
            self.server.abort(client, ctx);
            return Next::Over;
        }
        let is_idle = self.reading().is_some_and(Reading::is_idle) && client.request.ranges().next().is_none();
        if is_idle && !self.server.fin_forwarded { Next::Close(Some(self.server.as_reset())) } else { Next::Stay(self) }
    }

    /// Returns whether the client has received the response and the server's FIN, but has not sent a FIN itself.
    fn is_abandoned(&self, client: &Client) -> bool {
        let Some(exchange) = self.exchange() else { return false };
        let is_answered = exchange.response_complete.is_some() && exchange.limit == client.request.end();
        self.server.fin_forwarded && is_answered && client.fin.is_none() && client.has_all()
    }

    /// Runs expired timers: of the next request, of retransmissions to the server, of the splice order, and of the wait
    /// for late segments.
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
                // The agent does not know whether the order was applied. It counts later segments of this connection as
                // strays, which belong to no connection.
                counters.orders_failed.add(1);
                return Next::Over;
            }
            self.send_order(client, ctx, sent + 1);
        }
        client.expire_former_servers(ctx.now);
        self.order_splice(client, ctx);
        Next::Stay(self)
    }

    /// Asserts the invariants of the current phase.
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
