//! A simulation of all hosts, the switch and the agent together, with a simulated clock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use sluice_agent::{Configuration, Engine, Frames, Service, Settings};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, State};

use super::host::Host;
use super::rules::{Letters, lengths};
use super::switch::{AGENT_MAC, Port, SWITCH_MAC, Switch};

pub const GROUPS: usize = 3;
const ORDER: &[u8] = &[0x88, 0xb5];
const GUESSED: &[u8] = &[0x88, 0xb6];
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

/// The random number generator SplitMix64 (Steele, Lea and Flood 2014).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// How often links lose, repeat and delay packets, in percent.
#[derive(Clone, Copy, Default)]
pub struct Links {
    pub lost: u64,
    pub repeated: u64,
    pub delayed: u64,
}

/// A server of a group, and the bytes that the server has received.
pub struct Server {
    pub host: Host,
    pub address: SocketAddrV4,
    pub group: usize,
    sockets: Vec<SocketHandle>,
    /// The current connections of the sockets.
    streams: HashMap<SocketHandle, Stream>,
    /// The bytes received on connections that are over.
    finished: Vec<Vec<u8>>,
    pub is_deaf: bool,
    /// The function that computes the replies, if the server sends the first bytes (mail).
    pub responder: Option<Responder>,
}

/// A function that returns all bytes that a server sends, given all bytes that the server has received.
pub type Responder = fn(&[u8]) -> Vec<u8>;

/// A connection of a server.
#[derive(Default)]
struct Stream {
    /// All bytes that the server has received on this connection.
    received: Vec<u8>,
    /// If the server has a responder, `answered` is the number of its reply bytes that were added to `answers`;
    /// otherwise, the number of received bytes that were answered. `answers` contains the reply bytes that wait to be
    /// sent.
    answered: usize,
    answers: Vec<u8>,
}

/// A client's connection.
pub struct Client {
    pub socket: SocketHandle,
    /// All bytes that the client has to send.
    pub to_send: Vec<u8>,
    /// The number of bytes that the client sends at a time.
    pub piece: usize,
    pub sent: usize,
    pub received: Vec<u8>,
    /// Whether the client closes its side after it has sent all bytes.
    pub ends: bool,
    pub was_reset: bool,
    was_open: bool,
}

pub struct World {
    pub now: u64,
    pub engine: Engine,
    pub switch: Switch,
    pub client_host: Host,
    pub clients: Vec<Client>,
    pub servers: Vec<Server>,
    pub links: Links,
    pub rng: Rng,
    pub service: Arc<Service>,
    /// The number of packets that the switch has forwarded to the agent.
    pub at_agent: usize,
    travelling: BTreeMap<(u64, u64), (Port, Vec<u8>)>,
    serial: u64,
    has_moved: bool,
    next_port: u16,
}

/// Buffer size and MTU of a host, in bytes.
pub type Build = (usize, usize);

pub fn service(groups: usize, wait_s: u64) -> Arc<Service> {
    let group = |n: usize| (format!("{}", (b'a' + n as u8) as char), group_address(n));
    let address = "10.0.0.100:80".parse().unwrap();
    Arc::new(Service::new(
        "shop".to_owned(),
        address,
        8080,
        (0..groups).map(group).collect(),
        Arc::new(Letters(wait_s)),
    ))
}

/// Returns the service with guesses enabled, and with its servers numbered from 1 on.
fn guessing_service(service: Arc<Service>, servers: usize) -> Arc<Service> {
    let mut service = Arc::into_inner(service).unwrap();
    service.guess = true;
    for number in 0..servers {
        service.groups[number % GROUPS].servers.push(number as u16 + 1);
    }
    Arc::new(service)
}

fn group_address(group: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1 + group as u8), 80)
}

pub fn settings() -> Settings {
    Settings {
        mac: AGENT_MAC,
        address: Ipv4Addr::new(10, 0, 9, 2),
        gateway: Ipv4Addr::new(10, 0, 9, 1),
        epoch_s: 1_700_000_000,
        budget: 16 << 20,
    }
}

pub fn engine(service: &Arc<Service>) -> Engine {
    let mut engine = Engine::new(settings());
    let services = vec![Arc::clone(service)];
    engine.configure(0, Configuration { services, generation: 1, key: [7; 16], former_key: None });
    // The router announces its hardware address.
    let mut reply =
        [&AGENT_MAC[..], &SWITCH_MAC, &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2], &SWITCH_MAC, &[10, 0, 9, 1]].concat();
    reply.extend([&AGENT_MAC[..], &[10, 0, 9, 2]].concat());
    engine.receive(0, &reply, &mut Frames::default());
    assert!(engine.has_router());
    engine
}

impl World {
    pub fn new(seed: u64, links: Links, client: Build, servers: &[Build]) -> World {
        // The time in seconds within which a request must arrive; retransmissions over lossy links take long.
        let service = guessing_service(service(GROUPS, if links.lost > 0 { 600 } else { 2 }), servers.len());
        World::of(service, seed, links, client, servers)
    }

    pub fn of(service: Arc<Service>, seed: u64, links: Links, client: Build, servers: &[Build]) -> World {
        let build = |(n, (buffer, mtu)): (usize, &Build)| {
            let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 1 + n as u8), 80);
            let mut host = Host::new(*address.ip(), *buffer, *mtu, seed ^ (77 + n as u64));
            let sockets = (0..40).map(|_| host.add_socket()).collect();
            let (streams, finished) = (HashMap::new(), Vec::new());
            Server { host, address, group: n % GROUPS, sockets, streams, finished, is_deaf: false, responder: None }
        };
        let servers: Vec<_> = servers.iter().enumerate().map(build).collect();
        let mut groups: HashMap<SocketAddrV4, Vec<SocketAddrV4>> = HashMap::new();
        for server in &servers {
            groups.entry(group_address(server.group)).or_default().push(server.address);
        }
        let agent = SocketAddrV4::new(settings().address, service.agent_port);
        let mut switch = Switch::new(service.address, agent, groups);
        switch.numbers = servers.iter().map(|server| server.address).collect();
        World {
            now: 1_000_000,
            engine: engine(&service),
            switch,
            client_host: Host::new(CLIENT, client.0, client.1, seed),
            clients: Vec::new(),
            servers,
            links,
            rng: Rng(seed),
            service,
            at_agent: 0,
            travelling: BTreeMap::new(),
            serial: 0,
            has_moved: false,
            next_port: 40_000,
        }
    }

    /// Begins a connection of the client, and returns the connection's index.
    pub fn connect(&mut self, to_send: Vec<u8>, piece: usize) -> usize {
        let handle = self.client_host.add_socket();
        let socket = self.client_host.sockets.get_mut::<Socket<'_>>(handle);
        self.next_port += 1;
        let remote = (*self.service.address.ip(), self.service.address.port());
        socket.connect(self.client_host.interface.context(), remote, self.next_port).unwrap();
        let client = Client {
            socket: handle,
            to_send,
            piece,
            sent: 0,
            received: Vec::new(),
            ends: false,
            was_reset: false,
            was_open: false,
        };
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// Replaces the agent by another one that has the same key and no connections.
    pub fn replace_agent(&mut self) {
        self.engine = engine(&self.service);
    }

    pub fn socket(&mut self, client: usize) -> &mut Socket<'static> {
        self.client_host.sockets.get_mut(self.clients[client].socket)
    }

    /// Lets time pass until `until` holds, at most 2000 s.
    pub fn run(&mut self, until: impl Fn(&World) -> bool) {
        self.run_for(2_000_000_000_000, until);
    }

    pub fn run_for(&mut self, duration_ns: u64, until: impl Fn(&World) -> bool) {
        let end = self.now + duration_ns;
        while self.now < end && !until(self) {
            self.work();
            let now_us = (self.now / 1000) as i64;
            let hosts = self.servers.iter_mut().map(|server| server.host.due_us(now_us)).min().unwrap_or(i64::MAX);
            let hosts = hosts.min(self.client_host.due_us(now_us)).max(now_us + 1);
            let hosts = u64::try_from(hosts).unwrap().saturating_mul(1000);
            let packet = self.travelling.keys().next().map_or(u64::MAX, |(at, _)| *at);
            // After a packet was sent or delivered, an application may have data to send; the hosts run again 1 us
            // later.
            let application_due = if std::mem::take(&mut self.has_moved) { self.now + 1000 } else { u64::MAX };
            let next = hosts.min(packet).min(self.engine.due()).min(application_due);
            self.now = next.max(self.now + 1);
        }
    }

    fn work(&mut self) {
        while let Some((&(at, serial), _)) = self.travelling.first_key_value() {
            if at > self.now {
                break;
            }
            let (port, packet) = self.travelling.remove(&(at, serial)).unwrap();
            self.arrive(&port, packet);
        }
        if self.engine.due() <= self.now {
            let mut out = Frames::default();
            self.engine.poll(self.now, &mut out);
            self.agent_sends(&out);
        }
        self.use_clients();
        let now_us = (self.now / 1000) as i64;
        for packet in self.client_host.poll(now_us) {
            self.host_sends(packet);
        }
        for n in 0..self.servers.len() {
            self.servers[n].answer();
            for packet in self.servers[n].host.poll(now_us) {
                self.host_sends(packet);
            }
        }
    }

    fn arrive(&mut self, port: &Port, packet: Vec<u8>) {
        self.has_moved = true;
        match port {
            Port::Client => self.client_host.wire.incoming.push_back(packet),
            Port::Server(address) => {
                let server = self.servers.iter_mut().find(|server| server.address.ip() == address).unwrap();
                if !server.is_deaf {
                    server.host.wire.incoming.push_back(packet);
                }
            }
            Port::Agent => {
                let is_order = packet[12..14] == *ORDER;
                self.at_agent += usize::from(!is_order);
                let mut out = Frames::default();
                self.engine.receive(self.now, &packet, &mut out);
                self.agent_sends(&out);
            }
        }
    }

    fn agent_sends(&mut self, out: &Frames) {
        let frames: Vec<_> = out.iter().map(<[u8]>::to_vec).collect();
        for frame in frames {
            if frame[12..14] == [8, 6] || self.rng.percent(self.links.lost) {
                continue;
            }
            if let Some((port, packet)) = self.switch.agent_sends(&frame) {
                self.travel(port, packet);
            }
        }
    }

    fn host_sends(&mut self, packet: Vec<u8>) {
        self.has_moved = true;
        if self.rng.percent(self.links.lost) {
            return;
        }
        let times = 1 + u64::from(self.rng.percent(self.links.repeated));
        for _ in 0..times {
            if let Some((port, packet)) = self.switch.host_sends(packet.clone()) {
                self.travel(port, packet);
            }
        }
    }

    /// Sends a packet. Packets to the agent stay in order, and so do packets of at most 100 bytes to the other hosts:
    /// these may be ACKs, and smoltcp would apply the window of an older ACK. Larger packets may be delayed.
    fn travel(&mut self, port: Port, packet: Vec<u8>) {
        let packet = match port {
            Port::Agent if ![ORDER, GUESSED].contains(&&packet[12..14]) => Switch::frame(&packet),
            _ => packet,
        };
        let delay = match port {
            Port::Agent => 20_000,
            _ if packet.len() > 100 && self.rng.percent(self.links.delayed) => 100_000 + self.rng.below(3_000_000),
            _ => 100_000,
        };
        self.serial += 1;
        self.travelling.insert((self.now + delay, self.serial), (port, packet));
    }

    fn use_clients(&mut self) {
        for client in &mut self.clients {
            let socket = self.client_host.sockets.get_mut::<Socket<'_>>(client.socket);
            client.was_open |= socket.may_send();
            if socket.can_recv() {
                while let Ok(bytes) = socket.recv(|bytes| (bytes.len(), bytes.to_vec())) {
                    if bytes.is_empty() {
                        break;
                    }
                    client.received.extend(bytes);
                }
            }
            if client.sent < client.to_send.len() && socket.can_send() {
                let rest = &client.to_send[client.sent..];
                client.sent += socket.send_slice(&rest[..rest.len().min(client.piece)]).unwrap();
            }
            if client.ends && client.sent == client.to_send.len() && socket.may_send() {
                socket.close();
            }
            client.was_reset |= client.was_open && socket.state() == State::Closed;
        }
    }
}

impl Server {
    /// Lets the server's sockets listen, and answers received bytes: by the responder if there is one, otherwise each
    /// complete request by [`response`].
    fn answer(&mut self) {
        for handle in self.sockets.clone() {
            let socket = self.host.sockets.get_mut::<Socket<'_>>(handle);
            if !socket.is_open() {
                socket.listen(self.address.port()).unwrap();
                self.finished.extend(self.streams.remove(&handle).map(|stream| stream.received));
                continue;
            }
            let Stream { received, answered, answers } = self.streams.entry(handle).or_default();
            while socket.can_recv() {
                socket
                    .recv(|bytes| {
                        received.extend_from_slice(bytes);
                        (bytes.len(), ())
                    })
                    .unwrap();
            }
            if let Some(responder) = self.responder
                && socket.may_send()
            {
                let replies = responder(received);
                answers.extend(&replies[*answered..]);
                *answered = replies.len();
            }
            while self.responder.is_none()
                && let Some((head, body)) = lengths(&received[*answered..])
            {
                let Some(request) = received[*answered..].get(..head + body) else { break };
                answers.extend(response(request, self.group));
                *answered += head + body;
            }
            if socket.can_send() && !answers.is_empty() {
                let sent = socket.send_slice(answers).unwrap();
                answers.drain(..sent);
            }
            if answers.is_empty() && socket.state() == State::CloseWait {
                socket.close();
            }
        }
    }
}

/// Returns a `POST` request with a body of `body` bytes.
pub fn request(path: &str, body: usize) -> Vec<u8> {
    let mut request =
        format!("POST {path} HTTP/1.1\r\nHost: shop.example\r\nContent-Length: {body}\r\n\r\n").into_bytes();
    request.extend((0..body).map(|n| (n * 7 + path.len()) as u8));
    request
}

/// Returns the answer of a server of this group. The body is derived from the request; the number in the path is the
/// length of the body in bytes (10 without a number).
pub fn response(request: &[u8], group: usize) -> Vec<u8> {
    let path = String::from_utf8_lossy(request.split(|byte| *byte == b' ').nth(1).unwrap()).into_owned();
    let length = path.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(10);
    let sum = request.iter().fold(group as u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
    let mut response = format!("HTTP/1.1 200 OK\r\nGroup: {group}\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    let mut rng = Rng(sum);
    response.extend((0..length).map(|_| rng.next() as u8));
    response
}

/// Returns the bytes that the servers have received on each connection, with the server's group.
pub fn streams(world: &World) -> HashSet<(usize, Vec<u8>)> {
    let received = |server: &Server| -> Vec<_> {
        let all = server.streams.values().map(|stream| &stream.received).chain(&server.finished);
        all.filter(|received| !received.is_empty()).map(|received| (server.group, received.clone())).collect()
    };
    world.servers.iter().flat_map(received).collect()
}
