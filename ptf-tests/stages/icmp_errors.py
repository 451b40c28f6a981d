"""Tests of ICMP errors (types 3, 11, 12) to the sender of the quoted packet: error and quote are translated alike.

Other ICMP errors are routed like any packet (RFC 5508, REQ-4 and REQ-5). `EveryPairOfAddresses` sends all
combinations.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from harness.base import StageTest, unpinned_mid
from harness.flow import Flow
from harness.frames import ICMP, IP, TCP, UDP, Ether, Packet, changed, explained, layers, octets
from harness.plan import (
    CAPACITIES,
    CLIENT,
    CLIENT_HOST,
    D1,
    DNS,
    EMPTY,
    HOSTS,
    OWNED,
    POOL_A,
    PORTS,
    S1,
    S3,
    SERVICES,
    UNROUTED,
    UPLINK,
    UPLINK_HOST,
    WEB,
    Port,
)
from harness.probes import ether, plain, routed
from harness.switch import Cell
from scapy.layers.inet import IPOption_NOP
from sluice.names import PROTOCOL_TCP, PROTOCOL_UDP, DropReason, PinState
from sluice.names import Counter as Counts

ETHERNET = 14
TRANSPORT = 8
"""Bytes of the transport header that every ICMP error quotes (RFC 792)."""

ROUTER = "10.9.9.9"
"""Address of a router that sends errors from either side, and is neither client nor server."""


def inside(frame: Packet, quoted: int | None = None) -> bytes:
    """Return the packet as an error quotes it: the IP header, and `quoted` bytes after the header (None: all bytes)."""
    data = octets(frame)[ETHERNET:]
    return data if quoted is None else data[: (data[0] & 15) * 4 + quoted]


def translated(before: bytes, after: bytes) -> bytes:
    """Return the quoted packet `before` as the switch forwards it, if its complete translation is `after`.

    The switch translates only the IP header and the next eight bytes.
    """
    end = (before[0] & 15) * 4 + TRANSPORT
    return after[:end] + before[end:]


@dataclass(frozen=True)
class Exchange:
    """A flow about whose packets ICMP errors are sent, and the headers and payload of these packets."""

    flow: Flow
    ip: dict[str, object]
    fields: dict[str, object]
    payload: bytes = b"x" * 64

    def _same_hops(self, frame: Packet) -> Packet:
        return changed(frame, IP_ttl=61)

    def answer(self) -> tuple[Packet, Packet]:
        """Return a server's packet as sent and as received on the client's side, with equal TTLs."""
        frame = self.flow.reply(self.payload, ip=self.ip, **self.fields)
        return self._same_hops(frame), self._same_hops(self.flow.at_client(frame))

    def question(self) -> tuple[Packet, Packet]:
        """Return a client's packet as sent and as received on the server's side, with equal TTLs."""
        frame = self.flow.request(self.payload, ip=self.ip, **self.fields)
        return self._same_hops(frame), self._same_hops(self.flow.at_server(frame))


TCP_DATA: dict[str, object] = {"flags": "PA", "seq": 5001, "ack": 1001}


class ErrorTest(StageTest):
    """Base class: sends errors about the packets of a flow from both sides, and asserts the forwarded frames."""

    def from_client_side(
        self,
        exchange: Exchange,
        icmp: Packet,
        *changes: Any,
        quoted: int | None = None,
        source: str = CLIENT_HOST.address,
    ) -> None:
        """Send an error about a server's packet; assert that the server receives it with the packet quoted as sent."""
        sent, received = exchange.answer()
        host = exchange.flow.server.host
        quote = inside(received, quoted)
        frame = layers(
            ether(CLIENT_HOST),
            IP(src=source, dst=exchange.flow.key.service, ttl=64),
            icmp,
            quote,
        )
        expected = layers(
            Ether(dst=host.mac, src=host.port.mac),
            IP(src=source, dst=host.address, ttl=63),
            icmp,
            translated(quote, inside(sent, quoted)),
        )
        self.forwards(CLIENT, frame, host.port, expected, *changes)

    def from_server_side(
        self, exchange: Exchange, icmp: Packet, quoted: int | None = None, source: str | None = None
    ) -> None:
        """Send an error about a client's packet; assert that the client receives it with the packet quoted as sent."""
        sent, received = exchange.question()
        flow, host = exchange.flow, exchange.flow.server.host
        quote = inside(received, quoted)
        frame = layers(
            ether(host),
            IP(src=source or host.address, dst=flow.key.client, ttl=64),
            icmp,
            quote,
        )
        expected = layers(
            Ether(dst=flow.client_mac, src=CLIENT.mac),
            IP(src=source or flow.key.service, dst=flow.key.client, ttl=63),
            icmp,
            translated(quote, inside(sent, quoted)),
        )
        self.forwards(host.port, frame, CLIENT, expected)

    def tcp(self, **ip: object) -> Exchange:
        """Return an established connection to a server that uses another port than its service."""
        flow = self.establishes(Flow(WEB, S1))
        return Exchange(flow, ip, TCP_DATA)


def icmp(kind: int, code: int = 0, **fields: object) -> Packet:
    """Return the header of an ICMP error."""
    return cast(Packet, cast(Any, ICMP)(type=kind, code=code, **fields))


def of_router(to: str, header: Packet, quote: bytes) -> Packet:
    """Return an ICMP error of a router, as the uplink host forwards it to the switch."""
    return layers(ether(UPLINK_HOST), IP(src=ROUTER, dst=to, ttl=64), header, quote)


class PathMtu(ErrorTest):
    """Errors `fragmentation needed` keep their MTU in both directions; without these errors large transfers hang."""

    def runTest(self) -> None:
        exchange = self.tcp(flags="DF")
        self.from_client_side(exchange, icmp(3, 4, nexthopmtu=1400))
        self.from_client_side(exchange, icmp(3, 4, nexthopmtu=576), quoted=TRANSPORT, source=ROUTER)
        self.from_server_side(exchange, icmp(3, 4, nexthopmtu=1400))
        self.from_server_side(exchange, icmp(3, 4, nexthopmtu=576), quoted=TRANSPORT)


class EveryType(ErrorTest):
    """Errors of the types unreachable, time exceeded and parameter problem that quote 8 bytes of TCP are translated."""

    def runTest(self) -> None:
        exchange = self.tcp()
        for header in (icmp(3, 0), icmp(3, 1), icmp(3, 3), icmp(3, 13), icmp(11, 0), icmp(11, 1), icmp(12, 0, ptr=20)):
            self.from_client_side(exchange, header, quoted=TRANSPORT)
            self.from_server_side(exchange, header, quoted=TRANSPORT)


class ByRouter(ErrorTest):
    """The source address of an error is unchanged if a router sent it, and is translated if a server sent it."""

    def runTest(self) -> None:
        exchange = self.tcp()
        self.from_client_side(exchange, icmp(11, 0), quoted=TRANSPORT, source=ROUTER)
        self.from_server_side(exchange, icmp(11, 0), quoted=TRANSPORT, source=ROUTER)


class StateUntouched(ErrorTest):
    """An error about a connection does not change the connection's pin, not even its time stamp."""

    def runTest(self) -> None:
        exchange = self.tcp()
        before = self.assertPinned(exchange.flow, PinState.ESTABLISHED)
        self.pass_ticks(1)
        self.from_client_side(exchange, icmp(3, 1))
        self.from_server_side(exchange, icmp(3, 1))
        self.assertEqual(self.assertPinned(exchange.flow, PinState.ESTABLISHED), before)


class WithoutPin(ErrorTest):
    """An error about a connection without a pin reaches the same server as the connection's packets.

    The weights by capacity select this server.
    """

    def runTest(self) -> None:
        exchange = Exchange(Flow(WEB, S3), {}, TCP_DATA)
        self.from_client_side(exchange, icmp(3, 4, nexthopmtu=1400), unpinned_mid(WEB))
        self.from_server_side(exchange, icmp(3, 1))


class QuotedSizes(ErrorTest):
    """Errors may quote eight or more bytes of TCP, also odd numbers; bytes after the first eight are not changed."""

    def runTest(self) -> None:
        exchange = self.tcp()
        for quoted in (8, 9, 20, 21, 55, None):
            self.from_client_side(exchange, icmp(3, 1), quoted=quoted)
            self.from_server_side(exchange, icmp(3, 1), quoted=quoted)


class UdpInside(ErrorTest):
    """The UDP checksum is within the eight quoted bytes, and is translated unless it is 0."""

    def runTest(self) -> None:
        self.weigh_capacity(DNS, {D1: 1})
        flow = Flow(DNS, D1)
        for fields in ({}, {"chksum": 0}):
            exchange = Exchange(flow, {}, cast(dict[str, object], fields))
            for quoted in (TRANSPORT, None):
                self.from_client_side(exchange, icmp(3, 3), unpinned_mid(DNS), quoted=quoted)
                self.from_server_side(exchange, icmp(3, 3), quoted=quoted)


class UdpChecksumOfZeroInside(ErrorTest):
    """If a quoted UDP checksum would become 0, the switch writes 0xffff."""

    def runTest(self) -> None:
        self.weigh_capacity(DNS, {D1: 1})
        flow = Flow(DNS, D1)
        word = octets(changed(flow.reply(b"\0\0"), IP_ttl=61))[ETHERNET + 26 : ETHERNET + 28]
        exchange = Exchange(flow, {}, {}, payload=word)
        sent, _ = exchange.answer()
        self.assertEqual(octets(sent)[ETHERNET + 26 : ETHERNET + 28], b"\xff\xff")
        self.from_client_side(exchange, icmp(3, 3), unpinned_mid(DNS), quoted=TRANSPORT)


class OptionsInside(ErrorTest):
    """If the quoted packet has IPv4 options, the transport header after the options is translated."""

    def runTest(self) -> None:
        for number in (4, 40):
            exchange = Exchange(Flow(WEB, S3), {"options": [IPOption_NOP()] * number}, TCP_DATA)
            self.from_client_side(exchange, icmp(3, 1), unpinned_mid(WEB), quoted=TRANSPORT)
            self.from_server_side(exchange, icmp(3, 1), quoted=TRANSPORT)


class OptionsOutside(ErrorTest):
    """An error that itself has IPv4 options is translated."""

    def runTest(self) -> None:
        exchange = self.tcp()
        sent, received = exchange.answer()
        host, options = S1.host, [IPOption_NOP()] * 8
        outer: Any = IP(src=ROUTER, dst=WEB.address, ttl=64, options=options)
        frame = layers(ether(CLIENT_HOST), outer, icmp(3, 1), inside(received))
        inner: Any = IP(src=ROUTER, dst=host.address, ttl=63, options=options)
        quote = translated(inside(received), inside(sent))
        expected = layers(Ether(dst=host.mac, src=host.port.mac), inner, icmp(3, 1), quote)
        self.forwards(CLIENT, frame, host.port, expected)


class AboutOthers(StageTest):
    """An error about a packet that belongs to no service is routed unchanged."""

    def runTest(self) -> None:
        quote = inside(plain(CLIENT_HOST, UPLINK_HOST.address))
        frame = of_router(CLIENT_HOST.address, icmp(11), quote)
        self.forwards(UPLINK, frame, CLIENT, routed(frame, CLIENT_HOST))


class AboutLaterFragment(StageTest):
    """An error about a fragment without ports is routed to a host, and dropped if it is sent to a service."""

    def runTest(self) -> None:
        quote = inside(changed(plain(CLIENT_HOST, UPLINK_HOST.address), IP_frag=185))
        frame = of_router(CLIENT_HOST.address, icmp(11, 1), quote)
        self.forwards(UPLINK, frame, CLIENT, routed(frame, CLIENT_HOST))
        self.drops(UPLINK, of_router(WEB.address, icmp(11, 1), quote), DropReason.NO_SERVICE)


class AboutPing(StageTest):
    """An error about an ICMP message, which has no ports, is routed."""

    def runTest(self) -> None:
        ping = layers(
            Ether(dst=UPLINK.mac, src=CLIENT_HOST.mac),
            IP(src=CLIENT_HOST.address, dst=UPLINK_HOST.address),
            ICMP(type=8),
            b"ping",
        )
        frame = of_router(CLIENT_HOST.address, icmp(3, 1), inside(ping))
        self.forwards(UPLINK, frame, CLIENT, routed(frame, CLIENT_HOST))


class Redirect(StageTest):
    """ICMP messages of other types are not parsed further: a redirect to a host is routed unchanged."""

    def runTest(self) -> None:
        quote = inside(Flow(WEB, S1).syn())
        frame = of_router(CLIENT_HOST.address, icmp(5, 1, gw="10.0.1.2"), quote)
        self.forwards(UPLINK, frame, CLIENT, routed(frame, CLIENT_HOST))


@dataclass(frozen=True)
class End:
    """Source or destination of a quoted packet: address and port."""

    address: str
    port: int


@dataclass(frozen=True)
class Error:
    """An ICMP message about a quoted packet, and the port of the switch at which it arrives."""

    side: Port
    type: int
    to: str
    protocol: int
    source: End
    destination: End

    @property
    def about_sender(self) -> bool:
        """Whether the message is an error to the sender of the quoted packet."""
        return self.type in (3, 11, 12) and self.to == self.source.address

    def quoted(self, source: End | None = None, destination: End | None = None) -> bytes:
        """Return the quoted packet: the IP header, and eight bytes of TCP or a complete UDP datagram.

        `source` and `destination` replace the ends of the packet.
        """
        return _quoted(self.protocol, source or self.source, destination or self.destination)

    def frame(self, number: int) -> Packet:
        """Return the frame with the message; `number`, the identification field, distinguishes it from other frames."""
        head = layers(Ether(dst=self.side.mac, src="02:00:00:00:99:99"), IP(src=ROUTER, dst=self.to, ttl=64, id=number))
        return layers(head, icmp(self.type), self.quoted())


@cache
def _quoted(protocol: int, source: End, destination: End) -> bytes:
    """Return the quoted packet (`Error.quoted`) from a cache: scapy is slow, and many errors quote few packets."""
    network = IP(src=source.address, dst=destination.address, ttl=61, id=7)
    if protocol == PROTOCOL_UDP:
        return octets(layers(network, UDP(sport=source.port, dport=destination.port), b"question"))
    return octets(layers(network, TCP(sport=source.port, dport=destination.port, seq=9), b"x" * 40))[:28]


@dataclass
class Fate:
    """The expected effects of all errors together: frames by port, in order of arrival, and counts."""

    frames: dict[Port, list[bytes]]
    counts: Counter[Cell]


SERVED = {PROTOCOL_TCP: (WEB, S1), PROTOCOL_UDP: (DNS, D1)}
HIGH = 40000
TYPES = (3, 4, 11, 12, 5)
"""ICMP types of errors, and two types of other messages: source quench (4) and redirect (5)."""


class EveryPairOfAddresses(StageTest):
    """Errors from every side to every destination, about TCP and UDP packets with every pair of ends.

    Only errors to the sender of a packet that came from a service, or was sent to a server, belong to a connection. All
    other errors are routed unchanged, or dropped.
    """

    def ends(self, protocol: int) -> tuple[End, ...]:
        """Return ends of quoted packets: of a service, a server, the router itself and hosts."""
        service, server = SERVED[protocol]
        return (
            End(service.address, service.port),
            End(service.address, HIGH),
            End(EMPTY.address, EMPTY.port),
            End(server.host.address, server.port),
            End(server.host.address, HIGH),
            *(End(it, HIGH) for it in (CLIENT.address, CLIENT_HOST.address, UPLINK_HOST.address, UNROUTED)),
        )

    def errors(self) -> Iterator[Error]:
        """Yield all errors, with alternating types."""
        kinds = itertools.cycle(TYPES)
        for side, protocol in itertools.product((CLIENT, POOL_A, UPLINK), SERVED):
            ends = self.ends(protocol)
            for to in sorted({end.address for end in ends}):
                for source, destination in itertools.permutations(ends, 2):
                    yield Error(side, next(kinds), to, protocol, source, destination)

    def route(self, fate: Fate, frame: Packet, to: str) -> None:
        """Add the expectation that the frame is routed to an address, with a decremented TTL."""
        host = next((host for host in HOSTS if host.address == to), None)
        if host is None:
            fate.counts[Counts.VERDICTS, DropReason.NO_ROUTE] += 1
            return
        fate.counts[Counts.VERDICTS, DropReason.NONE] += 1
        fate.frames[host.port].append(
            octets(changed(frame, Ether_dst=host.mac, Ether_src=host.port.mac, IP_dst=to, IP_ttl=63))
        )

    def judge(self, fate: Fate, error: Error, frame: Packet) -> None:
        """Add the expected effects of one error."""
        services = {(item.address, item.protocol, item.port): item for item in SERVICES}
        endpoints = {
            (server.host.address, item.protocol, server.port): item for item in SERVICES for server in item.servers
        }
        source = (error.source.address, error.protocol, error.source.port)
        destination = (error.destination.address, error.protocol, error.destination.port)
        if error.about_sender and source in services:
            service = services[source]
            if service is EMPTY:
                fate.counts[unpinned_mid(service)] += 1
                fate.counts[Counts.VERDICTS, DropReason.NO_SERVER] += 1
                return
            (server,) = CAPACITIES[service]
            fate.counts[unpinned_mid(service)] += 1
            quote = error.quoted(source=End(server.host.address, server.port))
            self.route(fate, layers(*self._head(frame), quote), server.host.address)
        elif error.about_sender and source in endpoints:
            fate.counts[Counts.VERDICTS, DropReason.DIRECT_TO_SERVER] += 1
        elif error.to in OWNED:
            fate.counts[Counts.VERDICTS, DropReason.NO_SERVICE] += 1
        elif error.about_sender and destination in endpoints:
            service = endpoints[destination]
            quote = error.quoted(destination=End(service.address, service.port))
            self.route(fate, layers(*self._head(frame), quote), error.to)
        else:
            self.route(fate, frame, error.to)

    @staticmethod
    def _head(frame: Packet) -> tuple[Packet, ...]:
        """Return the frame's headers, without the quoted packet."""
        headers: list[Any] = []
        for layer in (Ether, IP, ICMP):
            header: Any = frame[layer].copy()
            header.remove_payload()
            headers.append(header)
        return tuple(headers)

    def runTest(self) -> None:
        for side, errors in itertools.groupby(self.errors(), key=lambda error: error.side):
            fate, frames = Fate({port: [] for port in PORTS}, Counter()), list[bytes]()
            for number, error in enumerate(errors):
                frame = error.frame(number)
                frames.append(octets(frame))
                self.judge(fate, error, frame)
            outcome = self.burst(side, frames)
            for port, expected in fate.frames.items():
                sent = [frame for number, frame in outcome.frames if number == self.switch.number(port)]
                for actual, other in itertools.zip_longest(sent, expected):
                    if actual != other:
                        self.fail(f"port {port.place}: not the expected frame\n{_shown(other)}\n{_shown(actual)}")
            self.assertEqual(outcome.changes, dict(fate.counts))


def _shown(frame: bytes | None) -> str:
    return "nothing" if frame is None else explained(frame)
