//! A second implementation of the data plane for a content service: the entries (slots) of connections, which component
//! forwards each connection, and the translation.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use sluice_agent::facts::Facts;
use sluice_agent::order::{Order, Remember, Status, Turn, shifted};
use sluice_agent::seq::Seq;
use sluice_agent::wire::{ETHERNET, Link, Segment};
use smoltcp::wire::{Ipv4Packet, TcpPacket, TcpSeqNumber};

pub const AGENT_MAC: [u8; 6] = [2, 0, 0, 0, 9, 2];
pub const SWITCH_MAC: [u8; 6] = [2, 0, 0, 0, 9, 1];

/// The destination of a packet.
#[derive(Debug, PartialEq, Eq)]
pub enum Port {
    Agent,
    Client,
    Server(Ipv4Addr),
}

pub struct Slot {
    pub server: SocketAddrV4,
    pub is_spliced: bool,
    /// The facts about the connection, if it is guessed and no agent has taken it.
    guess: Option<Facts>,
    pub has_ended: bool,
    delta: u32,
    shift: i8,
    client_shift: u8,
}

impl Slot {
    fn new(server: SocketAddrV4) -> Slot {
        Slot { server, is_spliced: false, guess: None, has_ended: false, delta: 0, shift: 0, client_shift: 0 }
    }
}

pub struct Switch {
    pub service: SocketAddrV4,
    pub agent: SocketAddrV4,
    pub groups: HashMap<SocketAddrV4, Vec<SocketAddrV4>>,
    pub slots: HashMap<SocketAddrV4, Slot>,
    /// The number of orders that were applied, and the number of packets of spliced connections.
    pub orders: usize,
    pub spliced: usize,
    /// The number of packets of guessed connections that were forwarded without an agent.
    pub guessed: usize,
    /// The server that the last splice order recorded for each client, and whether the client's next connection is a
    /// guess, which an agent checks.
    pub remembered: HashMap<Ipv4Addr, (SocketAddrV4, bool)>,
    /// The servers in the order of their numbers, which begin with 1.
    pub numbers: Vec<SocketAddrV4>,
    next: usize,
}

struct Headers {
    source: SocketAddrV4,
    destination: SocketAddrV4,
    is_syn: bool,
    is_rst: bool,
    is_fin: bool,
    has_ack: bool,
    payload: usize,
    seq: Seq,
}

fn parse(packet: &[u8]) -> Option<Headers> {
    let ip = Ipv4Packet::new_checked(packet).ok()?;
    let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
    let (from, to) = (ip.src_addr(), ip.dst_addr());
    assert!(tcp.verify_checksum(&from.into(), &to.into()), "a checksum is wrong");
    Some(Headers {
        source: SocketAddrV4::new(from, tcp.src_port()),
        destination: SocketAddrV4::new(to, tcp.dst_port()),
        is_syn: tcp.syn(),
        is_rst: tcp.rst(),
        is_fin: tcp.fin(),
        has_ack: tcp.ack(),
        payload: tcp.payload().len(),
        seq: Seq(tcp.seq_number().0 as u32),
    })
}

/// Rewrites the addresses and other fields of a packet, and updates its checksums.
fn change(
    packet: &mut [u8],
    source: SocketAddrV4,
    destination: SocketAddrV4,
    rewrite_tcp: impl FnOnce(&mut TcpPacket<&mut [u8]>),
) {
    let mut ip = Ipv4Packet::new_unchecked(packet);
    ip.set_src_addr(*source.ip());
    ip.set_dst_addr(*destination.ip());
    ip.fill_checksum();
    let mut tcp = TcpPacket::new_unchecked(ip.payload_mut());
    tcp.set_src_port(source.port());
    tcp.set_dst_port(destination.port());
    rewrite_tcp(&mut tcp);
    tcp.fill_checksum(&(*source.ip()).into(), &(*destination.ip()).into());
}

fn shift_sacks(tcp: &mut TcpPacket<&mut [u8]>, delta: u32) {
    let options = tcp.options_mut();
    let mut at = 0;
    while at < options.len() {
        match options[at] {
            0 => break,
            1 => at += 1,
            kind => {
                let length = usize::from(options[at + 1]);
                if kind == 5 {
                    for edge in options[at + 2..at + length].chunks_exact_mut(4) {
                        let number = u32::from_be_bytes([edge[0], edge[1], edge[2], edge[3]]);
                        edge.copy_from_slice(&number.wrapping_sub(delta).to_be_bytes());
                    }
                }
                at += length;
            }
        }
    }
}

impl Switch {
    pub fn new(service: SocketAddrV4, agent: SocketAddrV4, groups: HashMap<SocketAddrV4, Vec<SocketAddrV4>>) -> Switch {
        Switch {
            service,
            agent,
            groups,
            slots: HashMap::new(),
            orders: 0,
            spliced: 0,
            guessed: 0,
            remembered: HashMap::new(),
            numbers: Vec::new(),
            next: 0,
        }
    }

    /// Creates a slot for a client's SYN, with the server that is recorded for the client. Does nothing for other
    /// packets, without such a server, or if the connection has a slot and has not ended.
    fn claim(&mut self, headers: &Headers, packet: &[u8]) {
        let is_vacant = self.slots.get(&headers.source).is_none_or(|slot| slot.has_ended);
        let Some(&(server, is_guess)) = self.remembered.get(headers.source.ip()) else { return };
        if headers.is_syn && is_vacant {
            let syn_options = Segment::of_packet(packet).unwrap().syn_options();
            let facts = Facts {
                server_scale: None,
                client_scale: syn_options.scale,
                sack: syn_options.sack,
                server_has_sent: false,
                mss: syn_options.mss.unwrap_or(536),
                server: 1 + self.numbers.iter().position(|number| *number == server).unwrap() as u16,
                isn: headers.seq,
            };
            let guess = is_guess.then_some(facts);
            self.slots.insert(headers.source, Slot { is_spliced: !is_guess, guess, ..Slot::new(server) });
        }
    }

    /// Forwards a client's packet of a guessed connection: data to the agent; a SYN, a RST or a packet without data to
    /// the server.
    fn client_guessed(&mut self, headers: &Headers, mut packet: Vec<u8>) -> (Port, Vec<u8>) {
        let slot = self.slots.get_mut(&headers.source).unwrap();
        let facts = slot.guess.unwrap();
        if headers.payload > 0 && !headers.is_syn && !headers.is_rst {
            change(&mut packet, headers.source, self.agent, |_| {});
            return (Port::Agent, facts.write(&Switch::frame(&packet)));
        }
        slot.has_ended |= headers.is_rst;
        self.guessed += 1;
        let server = slot.server;
        change(&mut packet, headers.source, server, |_| {});
        (Port::Server(*server.ip()), packet)
    }

    /// Forwards a server's packet of a guessed connection to the client. Updates the facts that its options and data
    /// show.
    fn server_guessed(&mut self, headers: &Headers, mut packet: Vec<u8>) -> (Port, Vec<u8>) {
        let slot = self.slots.get_mut(&headers.destination).unwrap();
        let facts = slot.guess.as_mut().unwrap();
        if headers.is_syn {
            let syn_options = Segment::of_packet(&packet).unwrap().syn_options();
            facts.server_scale = syn_options.scale;
            facts.sack &= syn_options.sack;
        }
        facts.server_has_sent |= headers.payload > 0 || headers.is_fin;
        slot.has_ended |= headers.is_rst;
        self.guessed += 1;
        change(&mut packet, self.service, headers.destination, |_| {});
        (Port::Client, packet)
    }

    /// Forwards a packet of a client or a server.
    pub fn host_sends(&mut self, mut packet: Vec<u8>) -> Option<(Port, Vec<u8>)> {
        let headers = parse(&packet)?;
        if headers.destination == self.service {
            let client = headers.source;
            self.claim(&headers, &packet);
            match self.slots.get_mut(&client) {
                Some(slot) if slot.guess.is_some() && !(slot.has_ended && headers.is_syn) => {
                    Some(self.client_guessed(&headers, packet))
                }
                Some(slot) if slot.is_spliced && !(slot.has_ended && headers.is_syn) => {
                    slot.has_ended |= headers.is_rst;
                    self.spliced += 1;
                    let (delta, server, shift) = (slot.delta, slot.server, slot.client_shift);
                    change(&mut packet, client, server, |tcp| {
                        if !headers.is_syn {
                            tcp.set_window_len(shifted(tcp.window_len(), shift as i8));
                        }
                        if headers.has_ack {
                            tcp.set_ack_number(TcpSeqNumber(tcp.ack_number().0.wrapping_sub(delta as i32)));
                        }
                        shift_sacks(tcp, delta);
                    });
                    Some((Port::Server(*server.ip()), packet))
                }
                _ => {
                    change(&mut packet, client, self.agent, |_| {});
                    Some((Port::Agent, packet))
                }
            }
        } else {
            let client = headers.destination;
            let slot = self.slots.get_mut(&client).filter(|slot| slot.server == headers.source && !slot.has_ended)?;
            if slot.guess.is_some() {
                return Some(self.server_guessed(&headers, packet));
            }
            slot.has_ended |= headers.is_rst && slot.is_spliced;
            if !slot.is_spliced {
                change(&mut packet, self.service, client, |_| {});
                return Some((Port::Agent, packet));
            }
            self.spliced += 1;
            let (delta, shift) = (slot.delta, slot.shift);
            change(&mut packet, self.service, client, |tcp| {
                tcp.set_seq_number(TcpSeqNumber(tcp.seq_number().0.wrapping_add(delta as i32)));
                if !headers.is_syn {
                    tcp.set_window_len(shifted(tcp.window_len(), shift));
                }
            });
            Some((Port::Client, packet))
        }
    }

    /// Processes a frame of the agent: a packet, or an order to splice or hand over a connection.
    pub fn agent_sends(&mut self, frame: &[u8]) -> Option<(Port, Vec<u8>)> {
        assert_eq!((&frame[..6], &frame[6..12]), (&SWITCH_MAC[..], &AGENT_MAC[..]));
        if frame[12..14] == [0x88, 0xb5] {
            let mut order = Order::read(frame).expect("an order");
            assert_eq!(order.status, Status::Order);
            order.status = match self.slots.get_mut(&order.client) {
                Some(slot) if !slot.has_ended && order.turn == Turn::Agent => match slot.guess {
                    Some(facts) if facts.isn.0 == order.delta => {
                        slot.guess = None;
                        Status::Applied
                    }
                    None if !slot.is_spliced => Status::Applied,
                    _ => Status::Foreign,
                },
                Some(slot) if !slot.has_ended => {
                    self.orders += usize::from(!slot.is_spliced);
                    (slot.is_spliced, slot.delta, slot.shift) = (true, order.delta, order.shift);
                    slot.client_shift = order.client_shift;
                    slot.guess = None;
                    if order.remember != Remember::Nothing {
                        let memory = (slot.server, order.remember == Remember::Guess);
                        self.remembered.insert(*order.client.ip(), memory);
                    }
                    Status::Applied
                }
                _ => Status::NoConnection,
            };
            let mut answer = Vec::new();
            order.write(&Link { own: SWITCH_MAC, router: AGENT_MAC }, &mut answer);
            return Some((Port::Agent, answer));
        }
        let length = usize::from(u16::from_be_bytes([frame[ETHERNET + 2], frame[ETHERNET + 3]]));
        let mut packet = frame[ETHERNET..ETHERNET + length].to_vec();
        let headers = parse(&packet)?;
        if headers.source == self.agent {
            change(&mut packet, self.service, headers.destination, |_| {});
            return Some((Port::Client, packet));
        }
        let (client, group) = (headers.source, &self.groups[&headers.destination]);
        if headers.is_syn {
            let is_live = self.slots.get(&client).is_some_and(|slot| !slot.has_ended);
            if is_live && (self.slots[&client].is_spliced || self.slots[&client].guess.is_some()) {
                return None;
            }
            if !is_live {
                self.next += 1;
                let server = group[self.next % group.len()];
                self.slots.insert(client, Slot::new(server));
            }
        }
        let slot = self.slots.get_mut(&client)?;
        let server = slot.server;
        slot.has_ended |= headers.is_rst;
        change(&mut packet, client, server, |_| {});
        Some((Port::Server(*server.ip()), packet))
    }

    /// Returns a packet as a frame for the agent.
    pub fn frame(packet: &[u8]) -> Vec<u8> {
        let mut frame = [&AGENT_MAC[..], &SWITCH_MAC[..], &[8, 0], packet].concat();
        frame.resize(frame.len().max(60), 0);
        frame
    }
}
