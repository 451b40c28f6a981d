"""Stage `forward`: routes, neighbours and the tag of the port that a packet leaves by."""

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
    """A host of a connected network is its own next hop; so is a host behind the switch that is no server."""

    def runTest(self) -> None:
        self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
        self.forwards(UPLINK, *between(UPLINK_HOST, S1_HOST))
        self.forwards(S1_HOST.port, *between(S1_HOST, CLIENT_HOST))


class ByWayOf(StageTest):
    """A route by way of a gateway: the gateway's MAC address, the destination's IP address."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, "192.168.99.1")
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_GATEWAY))


class LongestPrefix(StageTest):
    """Of two routes the longer counts, whichever was written first; a host route beats both."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, "192.168.7.1")
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))
        self.insert(entries.route("192.168.7.1/32", CLIENT_HOST.address), entries.route("192.0.0.0/8", None))
        self.forwards(CLIENT, frame, CLIENT, routed(frame, CLIENT_HOST))
        other = plain(CLIENT_HOST, "192.168.7.2")
        self.forwards(CLIENT, other, UPLINK, routed(other, UPLINK_HOST))


class DefaultRoute(StageTest):
    """A prefix of no bits takes what no other does."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, UNROUTED)
        self.drops(CLIENT, frame, DropReason.NO_ROUTE)
        self.insert(entries.route("0.0.0.0/0", UPLINK_GATEWAY.address))
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_GATEWAY))


class NoRoute(StageTest):
    """Nowhere to go."""

    def runTest(self) -> None:
        self.drops(CLIENT, plain(CLIENT_HOST, UNROUTED), DropReason.NO_ROUTE)


class NoRouteToServer(StageTest):
    """A SYN that finds no route was never offered to the server: pinned, but not in the ledger."""

    def runTest(self) -> None:
        self.delete(entries.route(S1_HOST.port.network, None))
        flow = Flow(WEB, S1)
        counts = [(Counter.OFFERED, WEB.id), (Counter.CLAIMED, WEB.id)]
        self.drops(CLIENT, flow.syn(), DropReason.NO_ROUTE, counts)
        self.assertPinned(flow, PinState.PENDING)


class Unresolved(StageTest):
    """A neighbour without an entry: dropped, and the controller is told whom to ask for."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, ABSENT)
        expected = changed(frame, IP_ttl=63)
        self.punts(CLIENT, frame, PuntReason.NEIGHBOUR, expected, drop=DropReason.NEIGHBOUR_UNRESOLVED, next_hop=ABSENT)


class UnresolvedGateway(StageTest):
    """It is the gateway that is asked for, not the destination."""

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
    """A SYN to a server whose neighbour is unknown is for the controller to send: counted, for it does not pass again.
    Once the neighbour is resolved the retry goes through."""

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
    """An answer whose client's neighbour is unknown reaches the controller translated, but for MAC addresses and tag;
    it is in the ledger, and its pin goes on."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
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
    """A neighbour that turns up elsewhere is reached there with the next packet."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, UPLINK_HOST.address)
        number = self.switch.number(S1_HOST.port)
        moved = entries.neighbour(UPLINK_HOST.address, number, S1_HOST.port.mac, "02:00:00:00:02:77")
        self.switch.modify([moved])
        self.addCleanup(self.switch.modify, [self.switch.neighbour(UPLINK_HOST)])
        expected = changed(frame, Ether_src=S1_HOST.port.mac, Ether_dst="02:00:00:00:02:77", IP_ttl=63)
        self.forwards(CLIENT, frame, S1_HOST.port, expected)


class ChecksumAfterHop(StageTest):
    """The IPv4 checksum is right for every value of the TTL around the carry, with options too."""

    def runTest(self) -> None:
        for ttl, identification in ((255, 0), (128, 0xFFFF), (64, 0x1234), (2, 1)):
            frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=ttl, id=identification)
            self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))
        frame = plain(CLIENT_HOST, UPLINK_HOST.address, options=[IPOption_Timestamp()])
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))


class OtherProtocol(StageTest):
    """Neither TCP nor UDP nor ICMP is routed by its addresses, untouched."""

    def runTest(self) -> None:
        frame = changed(plain(CLIENT_HOST, UPLINK_HOST.address), IP_proto=132)
        self.forwards(CLIENT, frame, UPLINK, routed(frame, UPLINK_HOST))


class TagKept(StageTest):
    """Without a word on the port, or told to keep: frames leave with the tag they came with, or with none."""

    def runTest(self) -> None:
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, tagged(frame, 42, 5), out, tagged(expected, 42, 5))
        self.insert(entries.keep_vlan(self.switch.number(UPLINK)))
        self.forwards(CLIENT, tagged(frame, 42, 5), out, tagged(expected, 42, 5))
        self.forwards(CLIENT, frame, out, expected)


class TagSet(StageTest):
    """A port's own tag is put on, or takes the place of the other; its priority stays."""

    def runTest(self) -> None:
        self.insert(entries.set_vlan(self.switch.number(UPLINK), 99))
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, frame, out, tagged(expected, 99))
        self.forwards(CLIENT, tagged(frame, 42, 5, 1), out, tagged(expected, 99, 5, 1))
        self.forwards(UPLINK, *between(UPLINK_HOST, CLIENT_HOST))


class TagStripped(StageTest):
    """A port without tags."""

    def runTest(self) -> None:
        self.insert(entries.strip_vlan(self.switch.number(UPLINK)))
        frame, out, expected = between(CLIENT_HOST, UPLINK_HOST)
        self.forwards(CLIENT, tagged(frame, 42, 5), out, expected)
        self.forwards(CLIENT, frame, out, expected)


class TagsOfAConnection(StageTest):
    """Clients in one VLAN, servers in another: each side sees its own tag."""

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
