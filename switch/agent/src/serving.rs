//! Serves a connection whose server has answered: hands the request on, translates both ways, and has the data plane take over.
//!
//! A client's data goes to the server from the assembler only, up to the number that is meant for it; what carries no data is
//! passed on, translated. A server's segments are passed on as they are, translated.

use std::net::SocketAddrV4;

use crate::assembler::Assembler;
use crate::connection::Fate::{Ends, Stays};
use crate::connection::{Connection, Context, Fate, Phase};
use crate::decider::{Framing, Progress, Reason, Route, Sticky};
use crate::handover::{Handover, Then};
use crate::order::{self, ORDERS, Order, REPEAT, Remember, Status, shifted};
use crate::pool::DEFAULT_MSS;
use crate::reading::Reading;
use crate::seq::Seq;
use crate::wire::flags::{ACK, FIN, PSH, RST, SYN};
use crate::wire::{Head, Passage, Segment, pass_on};

/// Bytes of a response that may come beyond a gap.
pub const RESPONSE_ROOM: usize = 256 << 10;
/// The largest segment on Ethernet.
const LARGEST: u16 = 1460;

/// What a server has said of itself in its SYN-ACK.
pub struct Answer {
    /// Its first number.
    pub first: Seq,
    /// How its window field is to be read; none where windows are not scaled.
    pub scale: Option<u8>,
    /// Largest segment that it takes, if it says so.
    pub mss: Option<u16>,
    /// Its window, in bytes; none if only the client knows it.
    pub window: Option<u32>,
}

/// A server, and who translates.
pub struct Serving {
    /// Its group.
    pub group: usize,
    /// The group's address.
    address: SocketAddrV4,
    sticky: Sticky,
    /// What it has been sent.
    pub handover: Handover,
    /// The server's number and this make the client's.
    delta: u32,
    /// The server's window field, shifted left by this, is what the client is told.
    shift: i8,
    /// How the server's window field is to be read.
    scale: u8,
    /// The server's first number.
    opened: Seq,
    /// The server's first number that is for the client.
    first: Seq,
    /// The next number of the server that is to come.
    next: Seq,
    /// The client's FIN was handed on.
    fin_sent: bool,
    /// The server's FIN was passed on.
    fin_seen: bool,
    turn: Turn,
}

/// Who translates, and until when.
enum Turn {
    /// The agent, until the server has what the agent owns.
    Agent,
    /// The data plane is asked.
    Ordered { due: u64, sent: u32 },
    /// The agent, request by request.
    Each(Exchange),
    /// The agent, for the server hears again what the client has said. What comes before the limit may be said.
    Repeating { limit: Seq },
}

/// A request and its response, of a connection whose every request is decided anew.
struct Exchange {
    framing: Box<dyn Framing>,
    /// What comes before is meant for this server.
    limit: Seq,
    is_asked: bool,
    /// The response is complete, and whether the connection goes on behind it.
    answered: Option<bool>,
    /// What came of the response beyond gaps.
    response: Assembler,
}

impl Exchange {
    fn new(framing: Box<dyn Framing>, request: Seq, response: Seq) -> Exchange {
        let response = Assembler::new(response, RESPONSE_ROOM);
        Exchange { framing, limit: request, is_asked: false, answered: None, response }
    }

    /// Looks at what has come of the request behind the limit.
    fn follow_request(&mut self, request: &Assembler) -> Progress {
        let new = request.between(self.limit, request.end());
        if self.is_asked || new.is_empty() {
            return Progress::More;
        }
        let progress = self.framing.request(new);
        match progress {
            Progress::More => self.limit += new.len() as u32,
            Progress::Ended { used, .. } => {
                self.limit += used as u32;
                self.is_asked = true;
            }
            Progress::Opaque | Progress::Broken => {}
        }
        progress
    }

    /// Looks at what has come of the response.
    fn follow_response(&mut self) -> Progress {
        let new = self.response.ready();
        let mut progress = Progress::More;
        if self.answered.is_none() && !new.is_empty() {
            progress = self.framing.response(new);
            if let Progress::Ended { goes_on, .. } = progress {
                self.answered = Some(goes_on);
            }
        }
        self.response.forget_before(self.response.end());
        progress
    }
}

impl Serving {
    /// Of a server that has answered.
    pub fn new(
        connection: &Connection,
        (group, sticky, framing): (usize, Sticky, Option<Box<dyn Framing>>),
        answer: &Answer,
    ) -> Serving {
        let scale = answer.scale.filter(|_| connection.offer.scale.is_some()).unwrap_or(0);
        let first = answer.first;
        let mss = answer.mss.unwrap_or(DEFAULT_MSS).min(LARGEST);
        let base = connection.request.base();
        let turn = match framing {
            Some(framing) if sticky == Sticky::None => Turn::Each(Exchange::new(framing, base, first)),
            _ => Turn::Agent,
        };
        Serving {
            group,
            address: connection.service.groups[group].address,
            sticky,
            handover: Handover::new(base, mss, answer.window),
            delta: order::delta(connection.toward_client, first),
            shift: scale as i8 - connection.told as i8,
            scale,
            opened: first,
            first,
            next: first,
            fin_sent: false,
            fin_seen: false,
            turn,
        }
    }

    /// The next number that is to come of the server.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// When there is something to do.
    pub fn due(&self) -> Option<u64> {
        let order = if let Turn::Ordered { due, .. } = self.turn { Some(due) } else { None };
        [self.handover.due(), order].into_iter().flatten().min()
    }

    /// Memory taken.
    pub fn memory(&self) -> usize {
        let response = if let Turn::Each(exchange) = &self.turn { exchange.response.memory() } else { 0 };
        size_of::<Self>() + response
    }

    /// Whether both sides have ended, the client's with this FIN.
    pub fn is_over(&self, fin: Option<Seq>) -> bool {
        self.fin_seen && fin.is_some_and(|fin| fin.is_before(self.handover.una))
    }

    /// Whether the server has ended its side.
    pub fn has_ended(&self) -> bool {
        self.fin_seen
    }

    /// What the agent is to repeat of the client's bytes, in place of the client, ends here.
    fn owed(&self, view: &View, request: &Assembler) -> Seq {
        view.owned.earlier(self.limit(request))
    }

    /// The client's acknowledgement in the server's numbers. What it acknowledged of earlier servers or the agent is not this
    /// server's.
    fn to_server(&self, ack: Seq) -> Seq {
        (ack - self.delta).later(self.first)
    }

    /// What of the client's bytes is meant for this server.
    fn limit(&self, request: &Assembler) -> Seq {
        match &self.turn {
            Turn::Each(exchange) => exchange.limit,
            Turn::Repeating { limit } => *limit,
            _ => request.end(),
        }
    }
}

/// A server that hears a dialogue again.
impl Serving {
    /// Begins with nothing said.
    pub fn begin_repeating(&mut self) -> Seq {
        self.turn = Turn::Repeating { limit: self.handover.una };
        self.next
    }

    /// So many more bytes may be said.
    pub fn repeat_further(&mut self, bytes: usize) {
        if let Turn::Repeating { limit } = &mut self.turn {
            *limit += bytes as u32;
        }
    }

    /// What the server said before `next` was for the agent. The client hears the rest from `toward_client` on.
    pub fn swallow(&mut self, next: Seq, toward_client: Seq) {
        (self.first, self.next) = (next, next);
        self.delta = order::delta(toward_client, next);
    }

    /// All is said: what else comes is the client's.
    pub fn end_repeating(&mut self) {
        self.turn = Turn::Agent;
    }

    /// Whether a segment brings again what was for the agent.
    fn is_swallowed(&self, segment: &Segment<'_>) -> bool {
        segment.seq().is_before(self.first) && !segment.payload().is_empty()
    }
}

/// What a server is to know of the client's side.
#[derive(Clone, Copy)]
struct View {
    client: SocketAddrV4,
    owned: Seq,
    fin: Option<Seq>,
    ack: Seq,
    window: u16,
}

impl Serving {
    fn head(&self, view: &View, seq: Seq, flags: u8) -> Head {
        let ack = self.to_server(view.ack);
        Head { source: view.client, destination: self.address, seq, ack, flags, window: view.window }
    }

    /// Sends the bytes from one number to another, with the client's FIN if it comes right behind.
    fn send(&mut self, ctx: &mut Context<'_>, view: &View, request: &Assembler, (start, end): (Seq, Seq)) {
        let bytes = request.between(start, end);
        let ends = view.fin == Some(end);
        self.fin_sent |= ends;
        let flags = ACK | if bytes.is_empty() { 0 } else { PSH } | if ends { FIN } else { 0 };
        let head = self.head(view, start, flags);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [bytes, b""], frame));
    }

    /// Hands on what may be handed on. True when the server was sent something.
    fn hand_on(&mut self, ctx: &mut Context<'_>, view: &View, request: &Assembler) -> bool {
        let (limit, owed, mut has_sent) = (self.limit(request), self.owed(view, request), false);
        while let Some((start, end)) = self.handover.next_segment(owed, limit) {
            self.handover.sent(end, owed, ctx.now);
            self.send(ctx, view, request, (start, end));
            has_sent = true;
        }
        let next = self.handover.next;
        if view.fin == Some(next) && next == limit && !self.fin_sent {
            self.send(ctx, view, request, (next, next));
            has_sent = true;
        }
        has_sent
    }

    /// Sends again what the client repeats and does not know to be acknowledged. True when there was something.
    fn repeat(&mut self, ctx: &mut Context<'_>, view: &View, request: &Assembler, segment: &Segment<'_>) -> bool {
        let mut start = segment.seq().later(view.owned).later(self.handover.una);
        let end = (segment.seq() + segment.payload().len() as u32).earlier(self.handover.next);
        let mut has_sent = false;
        while start.is_before(end) {
            let part = end.earlier(start + self.handover.mss as u32);
            self.send(ctx, view, request, (start, part));
            (start, has_sent) = (part, true);
        }
        if !has_sent && segment.has(FIN) && self.fin_sent {
            let fin = segment.end() - 1;
            self.send(ctx, view, request, (fin, fin));
            has_sent = true;
        }
        has_sent
    }

    /// Passes a client's segment on, with what data it has.
    fn pass(&self, ctx: &mut Context<'_>, view: &View, segment: &Segment<'_>, seq: Seq) {
        let passage = Passage { head: self.head(view, seq, 0), sacks: Some((self.delta, self.first)) };
        ctx.out.push_with(|frame| pass_on(segment, &ctx.link, &passage, frame));
    }

    /// Passes on what the client acknowledges.
    fn acknowledge(&self, ctx: &mut Context<'_>, view: &View) {
        let head = self.head(view, self.handover.next, ACK);
        ctx.out.push_with(|frame| head.write(&ctx.link, &[], [b"", b""], frame));
    }

    /// The order to take the connection over.
    fn order(&self, connection: &Connection) -> Order {
        Order {
            status: Status::Order,
            client: connection.client,
            service: connection.service.address,
            delta: self.delta,
            shift: self.shift,
            remember: match self.sticky {
                Sticky::Client => Remember::Client,
                Sticky::Connection if connection.service.guess => Remember::Guess,
                _ => Remember::Nothing,
            },
            generation: connection.generation,
            turn: order::Turn::Spliced,
        }
    }
}

impl Connection {
    fn view(&self) -> View {
        View { client: self.client, owned: self.owned, fin: self.fin, ack: self.client_ack, window: self.window }
    }

    /// Begins with a server: splices at once, if the agent owes it nothing.
    pub fn begin_to_serve(&mut self, ctx: &mut Context<'_>) -> Fate {
        self.begin_repeating();
        self.follow_request();
        if !self.advance(ctx) {
            self.acknowledge_server(ctx);
        }
        Stays
    }

    /// The next request goes to the same server.
    pub fn serve_next(&mut self, ctx: &mut Context<'_>, route: Route) -> Fate {
        let base = self.request.base();
        if let Phase::Serving(serving) = &mut self.phase {
            serving.sticky = route.sticky;
            serving.turn = match route.framing {
                Some(framing) if route.sticky == Sticky::None => Turn::Each(Exchange::new(framing, base, serving.next)),
                _ => Turn::Agent,
            };
        }
        self.follow_request();
        self.advance(ctx);
        Stays
    }

    /// Acknowledges to the server what has come of it.
    pub fn acknowledge_server(&self, ctx: &mut Context<'_>) {
        let Phase::Serving(serving) = &self.phase else { return };
        serving.acknowledge(ctx, &self.view());
    }

    fn follow_request(&mut self) {
        let Phase::Serving(serving) = &mut self.phase else { return };
        let Turn::Each(exchange) = &mut serving.turn else { return };
        match exchange.follow_request(&self.request) {
            Progress::Opaque => serving.turn = Turn::Agent,
            // Nothing more of it is handed on; the server waits, and gives up.
            Progress::Broken => exchange.is_asked = true,
            Progress::More | Progress::Ended { .. } => {}
        }
    }

    /// No further request can come, and all of this one is the server's: it is the last that the connection meets.
    fn settle(&mut self) {
        let is_finished = self.is_finished();
        let Phase::Serving(serving) = &mut self.phase else { return };
        let Turn::Each(exchange) = &serving.turn else { return };
        if is_finished && exchange.is_asked && exchange.limit == self.request.end() {
            serving.turn = Turn::Agent;
        }
    }

    /// Whether the client asks for more when it knows that the server has ended the connection.
    fn asks_too_late(&self) -> bool {
        let Phase::Serving(serving) = &self.phase else { return false };
        let Turn::Each(exchange) = &serving.turn else { return false };
        serving.fin_seen && self.client_ack == self.toward_client && exchange.limit.is_before(self.request.end())
    }

    /// Asks the data plane to take over, if it may, and hands on what may be handed on. True when the server was sent something.
    pub fn advance(&mut self, ctx: &mut Context<'_>) -> bool {
        self.settle();
        self.take_turn(ctx);
        let view = self.view();
        let Phase::Serving(serving) = &mut self.phase else { return false };
        serving.hand_on(ctx, &view, &self.request)
    }

    /// Asks the data plane to take over, if the agent owes nothing to either side.
    fn take_turn(&mut self, ctx: &mut Context<'_>) {
        let Phase::Serving(serving) = &self.phase else { return };
        let owes = serving.handover.una.is_before(self.owned) || self.speech.is_some();
        if matches!(serving.turn, Turn::Agent) && !owes {
            self.send_order(ctx, 1);
        }
    }

    fn send_order(&mut self, ctx: &mut Context<'_>, sent: u32) {
        let Phase::Serving(serving) = &self.phase else { return };
        let order = serving.order(self);
        ctx.out.push_with(|frame| order.write(&ctx.link, frame));
        if let Phase::Serving(serving) = &mut self.phase {
            serving.turn = Turn::Ordered { due: ctx.now + (REPEAT << (sent - 1)), sent };
        }
    }

    /// Takes the data plane's confirmation.
    pub fn on_order(&mut self, ctx: &mut Context<'_>, status: Status) -> Fate {
        let Phase::Serving(serving) = &self.phase else { return Stays };
        if !matches!(serving.turn, Turn::Ordered { .. }) {
            return Stays;
        }
        match status {
            Status::Order => Stays,
            Status::Applied => {
                self.service.counters.spliced.add(1);
                Ends
            }
            Status::NoConnection => {
                self.service.counters.orders_failed.add(1);
                self.reset_both(ctx);
                Ends
            }
            Status::Foreign => {
                self.service.counters.orders_failed.add(1);
                Ends
            }
        }
    }

    /// Resets both sides.
    pub fn reset_both(&mut self, ctx: &mut Context<'_>) {
        if let Phase::Serving(serving) = &self.phase
            && serving.handover.una.is_before(self.owned)
        {
            self.service.counters.lost.add(1);
        }
        self.reset_server(ctx);
        self.reset_client(ctx);
    }

    /// Takes a client's segment that is for the server.
    pub fn serve_client(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>, has_come: bool) -> Fate {
        if self.repeating.is_some() {
            return self.hold_client(ctx, segment, has_come);
        }
        if self.asks_too_late() {
            // As the server would: no other may answer behind its end.
            self.service.counters.resets.add(1);
            self.reset_both(ctx);
            return Ends;
        }
        if self.reading.is_some() && !self.request.ready().is_empty() && !segment.payload().is_empty() {
            return self.read_or_acknowledge(ctx, segment, has_come);
        }
        self.follow_request();
        if self.advance(ctx) {
            return self.go_on(ctx);
        }
        let view = self.view();
        let Phase::Serving(serving) = &mut self.phase else { return Stays };
        let is_beyond = self.request.end().is_before(segment.seq()) && !matches!(serving.turn, Turn::Each(_));
        if is_beyond {
            serving.pass(ctx, &view, segment, segment.seq());
        } else if segment.payload().is_empty() && !segment.has(FIN) {
            serving.pass(ctx, &view, segment, segment.seq().earlier(serving.handover.next));
        } else if serving.repeat(ctx, &view, &self.request, segment) {
        } else if segment.seq().is_before(view.owned.later(serving.handover.una)) {
            // The client has not heard that it has come.
            self.acknowledge(ctx);
        } else {
            serving.acknowledge(ctx, &view);
        }
        self.go_on(ctx)
    }

    /// Takes a server's segment.
    pub fn serve_server(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        if self.repeating.is_some() {
            return self.hear_server(ctx, segment);
        }
        if segment.has(RST) {
            return self.on_server_reset(ctx, segment);
        }
        if segment.has(SYN) {
            self.acknowledge_server(ctx);
            return Stays;
        }
        if !segment.has(ACK) || self.is_of_another(segment) {
            return Stays;
        }
        if !self.take_acknowledgement(ctx, segment) {
            return self.go_on(ctx);
        }
        let Phase::Serving(serving) = &mut self.phase else { return Stays };
        if serving.is_swallowed(segment) {
            self.acknowledge_server(ctx);
            return Stays;
        }
        let Some(progress) = serving.take_data(segment) else {
            // There is no room for it; it comes again.
            return Stays;
        };
        self.pass_to_client(ctx, segment);
        if progress == Progress::Opaque {
            self.turn_opaque();
        }
        self.advance(ctx);
        self.go_on(ctx)
    }

    /// Whether a segment is of a server that the connection has left: before this one's first number, which a keepalive repeats.
    fn is_of_another(&self, segment: &Segment<'_>) -> bool {
        matches!(&self.phase, Phase::Serving(serving) if segment.seq().is_before(serving.opened - 1))
    }

    /// The connection stays with this server. What the client had sent already for the next request is not for it, and keeps the
    /// turn with the agent.
    fn turn_opaque(&mut self) {
        let Phase::Serving(serving) = &mut self.phase else { return };
        if serving.limit(&self.request) == self.request.end() {
            serving.turn = Turn::Agent;
        }
    }

    /// RFC 5961, section 3: a reset counts at the very number. One nearby is the client's to ask about, one elsewhere is of an
    /// earlier connection.
    fn on_server_reset(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> Fate {
        let Phase::Serving(serving) = &self.phase else { return Stays };
        let (next, una) = (serving.next, serving.handover.una);
        if segment.seq() - next < 0 || segment.seq().since(next) > RESPONSE_ROOM {
            return Stays;
        }
        self.pass_to_client(ctx, segment);
        if segment.seq() != next {
            return Stays;
        }
        self.service.counters.resets.add(1);
        if una.is_before(self.owned) {
            self.service.counters.lost.add(1);
        }
        Ends
    }

    /// Takes what a server acknowledges. False when the segment says nothing to the client.
    pub fn take_acknowledgement(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) -> bool {
        let view = self.view();
        let Phase::Serving(serving) = &mut self.phase else { return false };
        let is_bare = segment.payload().is_empty() && !segment.has(FIN);
        let window = u32::from(segment.window()) << serving.scale;
        let owed = serving.owed(&view, &self.request);
        let then = serving.handover.acknowledge(segment.ack(), window, owed, is_bare, segment.first_sack(), ctx.now);
        if let Then::Repeat(until) = then {
            let range = serving.handover.first_segment(until.earlier(owed));
            serving.send(ctx, &view, &self.request, range);
        }
        self.request.forget_before(serving.handover.una);
        // The client knows that what the agent owns has come, and takes no part in its repetition.
        let is_the_agents = is_bare && segment.ack().is_before(view.owned);
        if is_the_agents {
            self.advance(ctx);
        }
        !is_the_agents
    }

    /// Passes a server's segment on.
    fn pass_to_client(&mut self, ctx: &mut Context<'_>, segment: &Segment<'_>) {
        let room = self.request.room() >> self.told;
        let Phase::Serving(serving) = &self.phase else { return };
        let ack = segment.ack().later(self.owned);
        let window = if ack == segment.ack() {
            shifted(segment.window(), serving.shift)
        } else {
            // The window ends where it ended.
            let edge = segment.ack() + (u32::from(segment.window()) << serving.scale);
            u16::try_from(edge.since(ack) >> self.told).unwrap_or(u16::MAX)
        };
        let seq = segment.seq() + serving.delta;
        let head = Head {
            source: self.own_address,
            destination: self.client,
            seq,
            ack: if segment.has(ACK) { ack } else { segment.ack() },
            flags: 0,
            window: window.min(u16::try_from(room).unwrap_or(u16::MAX)),
        };
        let passage = Passage { head, sacks: None };
        ctx.out.push_with(|frame| pass_on(segment, &ctx.link, &passage, frame));
        self.toward_client = self.toward_client.later(segment.end() + serving.delta);
    }

    /// Goes on to the next request, when this one is answered and the client has the answer.
    fn go_on(&mut self, ctx: &mut Context<'_>) -> Fate {
        let Phase::Serving(serving) = &mut self.phase else { return Stays };
        let Turn::Each(exchange) = &serving.turn else { return Stays };
        let is_done = exchange.is_asked && exchange.answered == Some(true) && serving.handover.una == exchange.limit;
        let has_all = !self.client_ack.is_before(serving.next + serving.delta);
        if !is_done || !has_all || serving.fin_seen || self.reading.is_some() {
            return if ctx.is_draining { self.part(ctx) } else { Stays };
        }
        let reader = self.service.rules.begin(self.client, self.service.address);
        self.reading = Some(Reading::idle(reader, ctx.now));
        if !self.request.ready().is_empty() {
            return self.read(ctx);
        }
        if ctx.is_draining { self.part(ctx) } else { Stays }
    }

    /// The agent takes no new work: the connection ends if no request is under way.
    pub fn part(&mut self, ctx: &mut Context<'_>) -> Fate {
        if self.is_left() {
            self.reset_both(ctx);
            return Ends;
        }
        let is_idle = self.reading.as_ref().is_some_and(Reading::is_idle) && self.request.islands().next().is_none();
        let is_open = matches!(&self.phase, Phase::Serving(serving) if !serving.fin_seen);
        if is_idle && is_open { self.end(ctx) } else { Stays }
    }

    /// Whether the client has the answer, and the server's end, and has not ended its own side.
    fn is_left(&self) -> bool {
        let Phase::Serving(serving) = &self.phase else { return false };
        let Turn::Each(exchange) = &serving.turn else { return false };
        let is_answered = exchange.answered.is_some() && exchange.limit == self.request.end();
        serving.fin_seen && is_answered && self.fin.is_none() && self.client_ack == self.toward_client
    }

    /// Does what is due.
    pub fn serve_time(&mut self, ctx: &mut Context<'_>) -> Fate {
        if self.repeating.as_ref().is_some_and(|repeating| repeating.until <= ctx.now) {
            return self.leave_server(ctx, Reason::NoServer, Vec::new());
        }
        let view = self.view();
        let Phase::Serving(serving) = &mut self.phase else { return Stays };
        match serving.handover.timeout(serving.owed(&view, &self.request), ctx.now) {
            Ok(None) => {}
            Ok(Some(range)) => serving.send(ctx, &view, &self.request, range),
            Err(()) if self.repeating.is_some() => return self.leave_server(ctx, Reason::NoServer, Vec::new()),
            Err(()) => {
                self.reset_both(ctx);
                return Ends;
            }
        }
        if let Turn::Ordered { due, sent } = serving.turn
            && due <= ctx.now
        {
            self.service.counters.orders_repeated.add(1);
            if sent == ORDERS {
                // Whether it was applied is not known; what comes to the agent from now on is a stray.
                self.service.counters.orders_failed.add(1);
                return Ends;
            }
            self.send_order(ctx, sent + 1);
        }
        self.take_turn(ctx);
        Stays
    }
}

impl Serving {
    /// Takes a server's data: what comes of the response, or `None` when it cannot be taken now.
    fn take_data(&mut self, segment: &Segment<'_>) -> Option<Progress> {
        let mut progress = Progress::More;
        match &mut self.turn {
            Turn::Each(exchange) => {
                if !exchange.response.can_take(segment.seq(), segment.payload().len()) {
                    return None;
                }
                exchange.response.insert(segment.seq(), segment.payload());
                progress = exchange.follow_response();
                self.next = exchange.response.end();
            }
            _ if !self.next.is_before(segment.seq()) => {
                self.next = self.next.later(segment.seq() + segment.payload().len() as u32)
            }
            _ => {}
        }
        self.fin_seen |= segment.has(FIN);
        Some(progress)
    }
}
