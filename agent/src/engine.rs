//! The agent without its sockets: a state machine whose inputs are received frames and the time, and whose outputs are
//! frames to send.
//!
//! If the client sends the first bytes, a handshake needs no memory: the cookie that answers a SYN encodes the options
//! of the SYN, and the segment with the first bytes of the request acknowledges the cookie. From then on the connection
//! is stored, until the data plane has confirmed that it translates the packets. If the service's protocol begins with
//! a greeting, a handshake needs a cell ([`Handshakes`]), and the connection is stored from the client's ACK on.
//!
//! The work per frame grows only with the logarithm of the number of connections, in ordered sets.

mod guessed;

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddrV4;
use std::sync::Arc;

use slab::Slab;

use crate::arp::{self, Operation};
use crate::config::{Configuration, Service, Settings};
use crate::connection::{Connection, Context, Fate, Terms};
use crate::cookie::{ClientOptions, Cookies, Handshake};
use crate::facts::GUESSED;
use crate::frames::Frames;
use crate::handshakes::Handshakes;
use crate::order::{ORDER, Order, Turn};
use crate::pool::{Ability, DEFAULT_MSS, GroupReport, Pools, SCALE};
use crate::seq::Seq;
use crate::strays::Strays;
use crate::wire::flags::{ACK, FIN, RST, SYN};
use crate::wire::{ARP, IPV4, Link, Mac, Segment, SegmentHeader, SynOptions, ether_type, macs, reset, window_field};

/// Nanoseconds between ARP requests for the router's hardware address, before the address is known (request) and
/// afterwards (refresh).
const ROUTER_REQUEST_NS: u64 = 1_000_000_000;
const ROUTER_REFRESH_NS: u64 = 30_000_000_000;
/// Handshakes may use one eighth (the reciprocal of this number) of the memory budget.
const HANDSHAKE_SHARE: usize = 8;

/// The address and port of a client and of its content service.
pub type Key = (SocketAddrV4, SocketAddrV4);

/// A configured service.
struct ServiceEntry {
    service: Arc<Service>,
    /// The abilities (MSS, window, SACK) that SYN-ACKs announce to the service's clients.
    ability: Ability,
}

/// A connection, and its entries in the engine's sets.
struct ConnectionEntry {
    connection: Connection,
    key: Key,
    /// The time of the connection's entry in `timers`; `u64::MAX` if there is no entry.
    timer: u64,
    /// Whether the connection's current request is incomplete.
    waits: bool,
    /// The time of the connection's entry in `yielding`, if there is an entry.
    yields: Option<u64>,
    memory: usize,
}

/// The agent's state: its services, connections and handshakes.
pub struct Engine {
    settings: Settings,
    /// Nanoseconds for which the clock has been stopped in total.
    paused: u64,
    router: Option<Mac>,
    router_request_due: u64,
    cookies: Cookies,
    generation: u8,
    /// The services, by the port of the agent to which the switch translates the service's address and port.
    services: HashMap<u16, ServiceEntry>,
    /// The addresses of services that are no longer configured, by the port of the agent that they had.
    retired: HashMap<u16, SocketAddrV4>,
    pools: Pools,
    /// The time at which learned abilities expire next.
    abilities_due: u64,
    connections: Slab<ConnectionEntry>,
    by_key: HashMap<Key, usize>,
    timers: BTreeSet<(u64, usize)>,
    /// Connections that may be closed to free memory, as pairs of the time since which the connection is idle, and its
    /// index.
    yielding: BTreeSet<(u64, usize)>,
    /// The number of incomplete requests.
    waiting: usize,
    strays: Strays,
    handshakes: Handshakes,
    memory: usize,
    is_draining: bool,
}

impl Engine {
    /// Creates an agent without a configuration.
    pub fn new(settings: Settings) -> Engine {
        Engine {
            settings,
            paused: 0,
            router: None,
            router_request_due: 0,
            cookies: Cookies::default(),
            generation: 0,
            services: HashMap::new(),
            retired: HashMap::new(),
            pools: Pools::default(),
            abilities_due: u64::MAX,
            connections: Slab::new(),
            by_key: HashMap::new(),
            timers: BTreeSet::new(),
            yielding: BTreeSet::new(),
            waiting: 0,
            strays: Strays::default(),
            handshakes: Handshakes::default(),
            memory: 0,
            is_draining: false,
        }
    }

    /// Applies a configuration of the controller. Existing connections continue with the configuration that was in
    /// force when they began.
    pub fn configure(&mut self, now: u64, configuration: Configuration) {
        let Configuration { services, generation, key, former_key } = configuration;
        self.cookies = Cookies::new(key, former_key);
        self.generation = generation;
        for (port, entry) in self.services.drain() {
            self.retired.insert(port, entry.service.address);
        }
        self.pools.configure(services.iter());
        for service in services {
            self.retired.remove(&service.agent_port);
            self.services.insert(service.agent_port, ServiceEntry { service, ability: Ability::ASSUMED });
        }
        self.update_abilities(now);
    }

    /// Applies the properties of the groups' servers that other agents have learned.
    pub fn share(&mut self, now: u64, shared: Vec<GroupReport>) {
        self.pools.share(now, shared);
        self.update_abilities(now);
    }

    /// Returns the properties of the groups' servers that this agent has learned.
    pub fn learned(&self, now: u64) -> Vec<GroupReport> {
        self.pools.learned(now)
    }

    fn update_abilities(&mut self, now: u64) {
        self.abilities_due = u64::MAX;
        for entry in self.services.values_mut() {
            let (ability, until) = self.pools.of(now, &entry.service);
            entry.ability = ability;
            self.abilities_due = self.abilities_due.min(until);
        }
    }

    /// Records that the clock has stopped for `pause` nanoseconds ([`crate::clock`]). The time in cookies must be the
    /// same for all agents, so it includes the pauses: the agent computes it as the clock's time plus all pauses.
    pub fn note_pause(&mut self, pause: u64) {
        self.paused += pause;
    }

    /// Begins to drain. The agent serves each current request to its end, and closes connections that wait for their
    /// next request.
    pub fn drain(&mut self, now: u64, out: &mut Frames) {
        if std::mem::replace(&mut self.is_draining, true) {
            return;
        }
        let ids: Vec<usize> = self.connections.iter().map(|(id, _)| id).collect();
        for id in ids {
            self.with(id, now, out, Connection::drain);
        }
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns the number of incomplete requests.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns the memory, in bytes, of connections and of handshakes that wait for an ACK.
    pub fn memory(&self) -> usize {
        self.memory + self.handshakes.memory()
    }

    /// Returns the configured services.
    pub fn services(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.services.values().map(|entry| &entry.service)
    }

    /// Returns the time at which [`Self::poll`] has to be called.
    pub fn due(&self) -> u64 {
        let timer = self.timers.first().map_or(u64::MAX, |(due, _)| *due);
        timer.min(self.router_request_due).min(self.handshakes.due()).min(self.abilities_due)
    }

    /// Runs expired timers.
    pub fn poll(&mut self, now: u64, out: &mut Frames) {
        if self.router_request_due <= now {
            self.router_request_due = now + if self.router.is_some() { ROUTER_REFRESH_NS } else { ROUTER_REQUEST_NS };
            let (sender, target) = ((self.settings.mac, self.settings.address), ([0; 6], self.settings.gateway));
            let request = arp::Packet { operation: Operation::Request, sender, target };
            out.push_with(|frame| request.write(frame));
        }
        if self.abilities_due <= now {
            self.update_abilities(now);
        }
        while let Some((head, syn_options)) = self.handshakes.repeat(now) {
            let (options, length) = syn_options.write();
            self.send(&head, &options[..length], &[], out);
        }
        while let Some(&(due, id)) = self.timers.first().filter(|(due, _)| *due <= now) {
            self.timers.remove(&(due, id));
            self.connections[id].timer = u64::MAX;
            self.with(
                id,
                now,
                out,
                |connection, ctx| {
                    if connection.due() <= ctx.now { connection.on_time(ctx) } else { Fate::Stays }
                },
            );
        }
    }

    /// Processes a received frame.
    pub fn receive(&mut self, now: u64, frame: &[u8], out: &mut Frames) {
        let Some((destination, source)) = macs(frame) else { return };
        let is_broadcast = destination == [0xff; 6];
        if destination != self.settings.mac && !is_broadcast {
            return;
        }
        match ether_type(frame) {
            Some(ARP) => self.on_arp(frame, out),
            Some(IPV4) if !is_broadcast => {
                self.router.get_or_insert(source);
                if let Ok(segment) = Segment::read(frame) {
                    self.on_segment(now, &segment, out);
                }
            }
            Some(ORDER) if !is_broadcast => {
                let Some(order) = Order::read(frame) else { return };
                if let Some(&id) = self.by_key.get(&(order.client, order.service)) {
                    self.with(id, now, out, |connection, ctx| match order.turn {
                        Turn::Agent => connection.on_taken(ctx, order.status),
                        Turn::Spliced => connection.on_order(ctx, order.status),
                    });
                }
            }
            Some(GUESSED) if !is_broadcast => {
                self.router.get_or_insert(source);
                self.on_guessed(now, frame, out);
            }
            _ => {}
        }
        self.make_room(now, out);
    }

    fn on_arp(&mut self, frame: &[u8], out: &mut Frames) {
        let Some(packet) = arp::Packet::read(frame) else { return };
        if packet.sender.1 == self.settings.gateway {
            self.router = Some(packet.sender.0);
        }
        if packet.operation == Operation::Request && packet.target.1 == self.settings.address {
            let sender = (self.settings.mac, self.settings.address);
            let reply = arp::Packet { operation: Operation::Reply, sender, target: packet.sender };
            out.push_with(|frame| reply.write(frame));
        }
    }

    fn on_segment(&mut self, now: u64, segment: &Segment<'_>, out: &mut Frames) {
        let (source, destination) = (segment.source(), segment.destination());
        if *destination.ip() != self.settings.address {
            if let Some(&id) = self.by_key.get(&(destination, source)) {
                self.with(id, now, out, |connection, ctx| connection.on_server(ctx, segment));
            }
            return;
        }
        let port = destination.port();
        let Some(service) = self.service_at(port) else { return };
        match self.by_key.get(&(source, service)) {
            Some(&id) => self.with(id, now, out, |connection, ctx| connection.on_client(ctx, segment)),
            None => self.on_unknown(now, segment, out),
        }
    }

    /// Returns the address of the service that has this port at the agent now, or had it in an earlier configuration.
    fn service_at(&self, port: u16) -> Option<SocketAddrV4> {
        let service = self.services.get(&port).map(|entry| entry.service.address);
        service.or_else(|| self.retired.get(&port).copied())
    }

    /// Processes a client's segment that belongs to no connection.
    fn on_unknown(&mut self, now: u64, segment: &Segment<'_>, out: &mut Frames) {
        let (source, own) = (segment.source(), segment.destination());
        let Some(entry) = self.services.get(&own.port()) else { return };
        let key = (source, entry.service.address);
        if segment.has(RST) {
            self.handshakes.forget(&key);
            return;
        }
        if segment.has(SYN) {
            if !segment.has(ACK) && !self.is_draining {
                self.answer_syn(now, segment, out);
            }
            return;
        }
        let is_bare = segment.payload().is_empty() && !segment.has(FIN);
        if !segment.has(ACK) {
            return;
        }
        // A keepalive may contain one byte, with the sequence number of the client's SYN (RFC 9293, section 3.8.4).
        let is_keepalive =
            is_bare || segment.payload().len() == 1 && self.known(now, entry, segment, segment.seq()).is_some();
        if is_keepalive && !entry.service.rules.greets() {
            self.answer_keepalive(now, entry, segment, out);
            return;
        }
        match self.known(now, entry, segment, segment.seq() - 1) {
            None => self.on_stray(now, segment, is_bare, out),
            Some(known) => {
                self.handshakes.forget(&key);
                self.begin(now, segment, known, out);
            }
        }
    }

    /// Returns the options of the SYN with the initial sequence number `isn`, if the segment acknowledges a valid
    /// cookie for this SYN.
    fn known(&self, now: u64, entry: &ServiceEntry, segment: &Segment<'_>, isn: Seq) -> Option<ClientOptions> {
        let handshake = Handshake { client: segment.source(), service: entry.service.address, isn };
        self.cookies.read(&handshake, segment.ack() - 1, self.time_s(now))
    }

    /// Answers the keepalive of a client that has sent no data, but proves its handshake by the cookie. The ACK that
    /// completes the handshake has the next sequence number, and is not answered.
    fn answer_keepalive(&self, now: u64, entry: &ServiceEntry, segment: &Segment<'_>, out: &mut Frames) {
        let Some(syn_options) = self.known(now, entry, segment, segment.seq()) else { return };
        let room = entry.service.rules.room().min(entry.ability.window.into());
        let head = SegmentHeader {
            source: segment.destination(),
            destination: segment.source(),
            seq: segment.ack(),
            ack: segment.seq() + 1,
            flags: ACK,
            window: window_field(room, syn_options.scale.map_or(0, |_| SCALE)),
        };
        self.send(&head, &[], &[], out);
    }

    /// Counts a segment that belongs to no connection and has no valid cookie. It may only have overtaken the first
    /// segment of its request. If it carries data and is sent again and again, the agent has lost its connection; then
    /// the agent resets the client.
    fn on_stray(&mut self, now: u64, segment: &Segment<'_>, is_bare: bool, out: &mut Frames) {
        let (source, own) = (segment.source(), segment.destination());
        let Some(entry) = self.services.get(&own.port()) else { return };
        entry.service.counters.strays.add(1);
        if !is_bare && self.strays.is_persistent(now, source, own.port(), segment.seq()) {
            entry.service.counters.lost.add(1);
            let head = reset(segment, own, source);
            self.send(&head, &[], &[], out);
        }
    }

    /// Answers a SYN with a cookie. Data (RFC 7413) and unknown options in the SYN are ignored.
    fn answer_syn(&mut self, now: u64, segment: &Segment<'_>, out: &mut Frames) {
        let (client, own) = (segment.source(), segment.destination());
        let Some(entry) = self.services.get(&own.port()) else { return };
        entry.service.counters.handshakes.add(1);
        let requested = segment.syn_options();
        let Ability { mss, sack, window } = entry.ability;
        let syn_options = ClientOptions {
            mss: requested.mss.unwrap_or(DEFAULT_MSS),
            scale: requested.scale,
            sack: requested.sack && sack,
        };
        let handshake = Handshake { client, service: entry.service.address, isn: segment.seq() };
        let room = entry.service.rules.room();
        let head = SegmentHeader {
            source: own,
            destination: client,
            seq: self.cookies.make(&handshake, syn_options, self.time_s(now)),
            ack: segment.seq() + 1,
            flags: SYN | ACK,
            window: u16::try_from(room).unwrap_or(u16::MAX).min(window),
        };
        let announced = SynOptions { mss: Some(mss), scale: syn_options.scale.map(|_| SCALE), sack: syn_options.sack };
        let (options, length) = announced.write();
        self.send(&head, &options[..length], &[], out);
        if entry.service.rules.greets() {
            let key = (client, entry.service.address);
            self.handshakes.note(key, head, announced, now);
        }
    }

    /// Frees memory until connections and handshakes are within the budget. Handshakes are limited to a fraction of the
    /// budget, and are dropped first; then the agent closes the connections that have been idle longest.
    fn make_room(&mut self, now: u64, out: &mut Frames) {
        while self.handshakes.memory() > self.settings.budget / HANDSHAKE_SHARE && self.handshakes.make_room() {}
        while self.memory() > self.settings.budget {
            if self.handshakes.make_room() {
                continue;
            }
            let Some(&(_, oldest)) = self.yielding.first() else { break };
            self.with(oldest, now, out, Connection::give_up);
        }
    }

    fn send(&self, head: &SegmentHeader, options: &[u8], payload: &[u8], out: &mut Frames) {
        if let Some(link) = self.link() {
            out.push_with(|frame| head.write(&link, options, [payload, b""], frame));
        }
    }

    fn link(&self) -> Option<Link> {
        self.router.map(|router| Link { own: self.settings.mac, router })
    }

    fn time_s(&self, now: u64) -> u64 {
        self.settings.epoch_s + (now + self.paused) / 1_000_000_000
    }

    /// Creates a connection for the first segment of its request. If the service's protocol begins with a greeting, the
    /// segment may be the ACK of the handshake.
    fn begin(&mut self, now: u64, segment: &Segment<'_>, syn_options: ClientOptions, out: &mut Frames) {
        let Some(terms) = self.terms(segment, syn_options, syn_options.scale.map_or(0, |_| SCALE)) else { return };
        let connection = Connection::new(terms, (segment.seq(), segment.ack() - 1), now);
        self.insert_connection(now, connection, segment, out);
    }

    /// Returns the fixed properties of a connection that begins with this segment. `announced_scale` is the window
    /// scale announced to the client.
    fn terms(&self, segment: &Segment<'_>, syn_options: ClientOptions, announced_scale: u8) -> Option<Terms> {
        let own_address = segment.destination();
        let entry = self.services.get(&own_address.port())?;
        Some(Terms {
            client: segment.source(),
            own_address,
            service: Arc::clone(&entry.service),
            generation: self.generation,
            syn_options,
            announced_scale,
            window_limit: entry.ability.window,
        })
    }

    /// Stores a new connection, and processes its first segment.
    fn insert_connection(&mut self, now: u64, connection: Connection, segment: &Segment<'_>, out: &mut Frames) {
        let key = (connection.terms().client, connection.terms().service.address);
        let memory = connection.memory();
        let entry = ConnectionEntry { connection, key, timer: u64::MAX, waits: false, yields: None, memory };
        self.memory += memory;
        let id = self.connections.insert(entry);
        self.by_key.insert(key, id);
        self.with(id, now, out, |connection, ctx| connection.begin(ctx, segment));
    }

    /// Runs `work` on a connection, and then updates the engine's sets and counts for this connection.
    fn with(
        &mut self,
        id: usize,
        now: u64,
        out: &mut Frames,
        work: impl FnOnce(&mut Connection, &mut Context<'_>) -> Fate,
    ) {
        let Some(link) = self.link() else { return };
        let is_draining = self.is_draining;
        let entry = &mut self.connections[id];
        let mut ctx = Context { now, link, out, pools: &mut self.pools, has_learned: false, is_draining };
        let fate = work(&mut entry.connection, &mut ctx);
        let has_learned = ctx.has_learned;
        match fate {
            Fate::Stays => {
                if cfg!(debug_assertions) {
                    entry.connection.check();
                }
                let memory = entry.connection.memory();
                self.memory = self.memory - entry.memory + memory;
                entry.memory = memory;
                let waits = entry.connection.waits_since().is_some();
                self.waiting = self.waiting + usize::from(waits) - usize::from(entry.waits);
                entry.waits = waits;
                let yields = entry.connection.yields_since();
                if yields != entry.yields {
                    entry.yields.map(|since| self.yielding.remove(&(since, id)));
                    yields.map(|since| self.yielding.insert((since, id)));
                    entry.yields = yields;
                }
                // The stored timer may be earlier than the connection's next timer. When the stored timer expires, it
                // is set to the next one.
                let due = entry.connection.due();
                if due < entry.timer {
                    self.timers.remove(&(entry.timer, id));
                    self.timers.insert((due, id));
                    entry.timer = due;
                }
            }
            Fate::Ends => {
                let entry = self.connections.remove(id);
                self.memory -= entry.memory;
                self.by_key.remove(&entry.key);
                self.timers.remove(&(entry.timer, id));
                entry.yields.map(|since| self.yielding.remove(&(since, id)));
                self.waiting -= usize::from(entry.waits);
            }
        }
        if has_learned {
            self.update_abilities(now);
        }
    }

    /// Returns whether the router's hardware address is known.
    pub fn has_router(&self) -> bool {
        self.router.is_some()
    }
}
