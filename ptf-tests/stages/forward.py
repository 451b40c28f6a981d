"""Tests of stage `forward`: routes, neighbours, and the VLAN tag of the port by which a packet leaves."""

from __future__ import annotations

from typing import Any

from harness import entries
from harness.base import StageTest, again, completed, first_answer, new, repeated_answer
from harness.flow import Flow
from harness.frames import Ether, changed, tagged
from harness.plan import (
    ABSENT,
    ABSENT_GATEWAY,
    CLIENT,
    CLIENT_HOST,
    S1,
    S1_HOST,
    UNROUTED,
    UPLINK,
    UPLINK_GATEWAY,
    UPLINK_HOST,
    WEB,
)
from harness.probes import between, plain, routed
from scapy.layers.inet import IPOption_Timestamp
from sluice.names import Counter, DropReason, PinState, PuntReason, Register


class Connected(StageTest):
    """A host in a connected network is its own next hop, also if servers are connected to the same port."""

    def runTest(self) -> None:
        self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
        self.forwards(UPLINK, *between(UPLINK_HOST, S1_HOST))
        self.forwards(S1_HOST.port, *between(S1_HOST, CLIENT_HOST))


class ByWayOf(StageTest):
    """A packet that is routed to a gateway has the gateway's MAC address and the destination's IP address."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, "192.168.99.1")
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_GATEWAY))


class LongestPrefix(StageTest):
    """Of two routes the longer prefix applies, whichever was written first; a host route precedes both."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, "192.168.7.1")
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))
        self.insert(entries.route("192.168.7.1/32", CLIENT_HOST.address), entries.route("192.0.0.0/8", None))
        self.forwards(CLIENT, frame, CLIENT, routed(frame, CLIENT_HOST))
        other = plain(CLIENT_HOST, "192.168.7.2")
        self.forwards(CLIENT, other, UPLINK, routed(other, UPLINK_HOST))


class DefaultRoute(StageTest):
    """A prefix of length 0 applies if no other prefix matches."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, UNROUTED)
        self.drops(CLIENT, frame, DropReason.NO_ROUTE)
        self.insert(entries.route("0.0.0.0/0", UPLINK_GATEWAY.address))
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_GATEWAY))


class NoRoute(StageTest):
    """A packet without a route is dropped."""

    def runTest(self) -> None:
        self.drops(CLIENT, plain(CLIENT_HOST, UNROUTED), DropReason.NO_ROUTE)


class NoRouteToServer(StageTest):
    """A SYN to a server without a route is pinned, but does not count for the server, which never receives it."""

    def runTest(self) -> None:
        self.delete(entries.host_route(S1_HOST.address), entries.route(S1_HOST.port.network, None))
        flow = Flow(WEB, S1)
        counts = [(Counter.OFFERED, WEB.id), (Counter.CLAIMED, WEB.id)]
        self.drops(CLIENT, flow.syn(), DropReason.NO_ROUTE, counts)
        self.assertPinned(flow, PinState.PENDING)


class Unresolved(StageTest):
    """A packet to a host that is no neighbour yet is dropped; the controller receives it, with 0 as its next hop."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, ABSENT)
        expected = changed(frame, IP_ttl=63)
        self.punts(CLIENT, frame, PuntReason.NEIGHBOUR, expected, drop=DropReason.NEIGHBOUR_UNRESOLVED)


class UnresolvedGateway(StageTest):
    """If the next hop is a gateway, the controller receives the gateway's id: it must resolve the gateway's address."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, "192.168.8.1")
        self.punts(
            CLIENT,
            frame,
            PuntReason.NEIGHBOUR,
            changed(frame, IP_ttl=63),
            drop=DropReason.NEIGHBOUR_UNRESOLVED,
            next_hop=ABSENT_GATEWAY,
        )


class UnresolvedServer(StageTest):
    """A SYN to a server whose MAC address is unknown is sent to the controller, and counts for the server.

    The SYN is counted now because it does not pass the pipeline again. Once the controller has resolved the neighbour,
    the repeated SYN is forwarded.
    """

    def runTest(self) -> None:
        entry = self.switch.neighbour(S1_HOST)
        self.switch.delete([entry])
        flow = Flow(WEB, S1)
        try:
            outcome = self.exchange(CLIENT, flow.syn())
        finally:
            self.switch.insert([entry])
        self.assertEqual(outcome.frames, [])
        self.assertEqual(
            outcome.changes,
            {
                (Counter.VERDICTS, DropReason.NEIGHBOUR_UNRESOLVED): 1,
                (Counter.PUNTS, PuntReason.NEIGHBOUR): 1,
                (Counter.OFFERED, WEB.id): 1,
                (Counter.CLAIMED, WEB.id): 1,
                (Register.LEDGER_SYN, S1.id): 1,
            },
        )
        self.assertPinned(flow, PinState.PENDING)
        (packet,) = outcome.packets
        self.assertEqual(packet["reason"], PuntReason.NEIGHBOUR)
        self.client_sends(flow, flow.syn(), again(WEB, S1))


class UnresolvedClient(StageTest):
    """An answer to a client whose MAC address is unknown is sent to the controller, translated except for MAC addresses
    and tag.

    The answer counts for the server, and changes the state of the pin.
    """

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        entry = self.switch.neighbour(CLIENT_HOST)
        self.switch.delete([entry])
        self.addCleanup(self.switch.insert, [entry])
        for counted in (first_answer(S1), repeated_answer(S1)):
            answer = tagged(flow.syn_ack(), 42, 5)
            sent: Any = flow.at_client(flow.syn_ack())
            sent[Ether].src, sent[Ether].dst = answer.src, answer.dst
            self.punts(
                S1_HOST.port,
                answer,
                PuntReason.NEIGHBOUR,
                tagged(sent, 42, 5),
                counted,
                drop=DropReason.NEIGHBOUR_UNRESOLVED,
                next_hop=CLIENT_HOST.address,
            )
            self.assertPinned(flow, PinState.ANSWERED)


class NeighbourMoves(StageTest):
    """A neighbour that has moved to another port receives the next packet there."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, UPLINK_HOST.address)
        number = self.switch.number(S1_HOST.port)
        moved = entries.neighbour(UPLINK_HOST.address, number, S1_HOST.port.mac, "02:00:00:00:02:77")
        self.replace(moved, self.switch.neighbour(UPLINK_HOST))
        expected = changed(frame, Ether_src=S1_HOST.port.mac, Ether_dst="02:00:00:00:02:77", IP_ttl=63)
        self.forwards(CLIENT, frame, S1_HOST.port, expected)


class ChecksumAfterHop(StageTest):
    """The IPv4 checksum is valid after the TTL is decremented, for values with a carry, also with IPv4 options."""

    def runTest(self) -> None:
        for ttl, identification in ((255, 0), (128, 0xFFFF), (64, 0x1234), (2, 1)):
            frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=ttl, id=identification)
            self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))
        frame = plain(CLIENT_HOST, UPLINK_HOST.address, options=[IPOption_Timestamp()])
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))


class OtherProtocol(StageTest):
    """A packet that is neither TCP, UDP nor ICMP is routed by its addresses, and its payload is not changed."""

    def runTest(self) -> None:
        frame = changed(plain(CLIENT_HOST, UPLINK_HOST.address), IP_proto=132)
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))


class TagKept(StageTest):
    """If the port has no VLAN entry, or the entry `keep`, frames leave as they arrived, with or without a tag."""

    def runTest(self) -> None:
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, tagged(frame, 42, 5), out, tagged(expected, 42, 5))
        self.insert(entries.keep_vlan(self.switch.number(UPLINK)))
        self.forwards(CLIENT, tagged(frame, 42, 5), out, tagged(expected, 42, 5))
        self.forwards(CLIENT, frame, out, expected)


class TagSet(StageTest):
    """The tag of a port is added to untagged frames, and replaces the tag of tagged frames; the priority stays."""

    def runTest(self) -> None:
        self.insert(entries.set_vlan(self.switch.number(UPLINK), 99))
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, frame, out, tagged(expected, 99))
        self.forwards(CLIENT, tagged(frame, 42, 5, 1), out, tagged(expected, 99, 5, 1))
        self.forwards(UPLINK, *between(UPLINK_HOST, CLIENT_HOST))


class TagStripped(StageTest):
    """If a port is configured to strip tags, frames leave it without a tag."""

    def runTest(self) -> None:
        self.insert(entries.strip_vlan(self.switch.number(UPLINK)))
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, tagged(frame, 42, 5), out, expected)
        self.forwards(CLIENT, frame, out, expected)


class TagsOfAConnection(StageTest):
    """If clients and servers are in different VLANs, each side receives frames with the tag of its VLAN."""

    def runTest(self) -> None:
        self.insert(
            entries.set_vlan(self.switch.number(CLIENT), 10), entries.set_vlan(self.switch.number(S1_HOST.port), 20)
        )
        flow = Flow(WEB, S1)
        pool = S1_HOST.port
        self.forwards(CLIENT, tagged(flow.syn(), 10), pool, tagged(flow.at_server(flow.syn()), 20), new(WEB, S1))
        answer = flow.syn_ack()
        self.forwards(pool, tagged(answer, 20), CLIENT, tagged(flow.at_client(answer), 10), first_answer(S1))
        self.forwards(CLIENT, tagged(flow.ack(), 10), pool, tagged(flow.at_server(flow.ack()), 20), completed(S1))
