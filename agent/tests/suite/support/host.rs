//! A host with a real TCP stack (smoltcp), which exchanges packets with the switch and does not depend on the agent.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

/// The queues of packets to and from a host.
#[derive(Default)]
pub struct Wire {
    pub incoming: VecDeque<Vec<u8>>,
    pub outgoing: Vec<Vec<u8>>,
    pub mtu: usize,
}

pub struct Incoming(Vec<u8>);

impl RxToken for Incoming {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

pub struct Outgoing<'w>(&'w mut Vec<Vec<u8>>);

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut packet = vec![0; length];
        let result = f(&mut packet);
        self.0.push(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Incoming;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Incoming, Outgoing<'_>)> {
        Some((Incoming(self.incoming.pop_front()?), Outgoing(&mut self.outgoing)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

pub struct Host {
    pub wire: Wire,
    pub interface: Interface,
    pub sockets: SocketSet<'static>,
    /// The size of a socket's buffers in bytes, which determines the socket's window scale.
    pub buffer: usize,
}

impl Host {
    pub fn new(address: Ipv4Addr, buffer: usize, mtu: usize, seed: u64) -> Host {
        let mut wire = Wire { mtu, ..Wire::default() };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(address.into(), 24)).unwrap());
        interface.routes_mut().add_default_ipv4_route(Ipv4Addr::new(10, 0, 0, 1)).unwrap();
        Host { wire, interface, sockets: SocketSet::new(Vec::new()), buffer }
    }

    pub fn add_socket(&mut self) -> SocketHandle {
        let buffer = || SocketBuffer::new(vec![0; self.buffer]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        self.sockets.add(socket)
    }

    pub fn poll(&mut self, now_us: i64) -> Vec<Vec<u8>> {
        self.interface.poll(Instant::from_micros(now_us), &mut self.wire, &mut self.sockets);
        std::mem::take(&mut self.wire.outgoing)
    }

    pub fn due_us(&mut self, now_us: i64) -> i64 {
        let due = self.interface.poll_at(Instant::from_micros(now_us), &self.sockets);
        due.map_or(i64::MAX, |due| due.total_micros())
    }
}
