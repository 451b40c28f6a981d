"""Tests of the verdict: packets to and from the controller, and the limit on packets to the controller."""

from __future__ import annotations

from harness.base import AWAIT_S, Outcome, StageTest
from harness.flow import Flow
from harness.frames import ARP, Ether, Packet, changed, layers, octets
from harness.plan import ABSENT, CLIENT, CLIENT_HOST, PORTS, S1, UNROUTED, UPLINK_HOST, WEB
from harness.probes import arp_answer, arp_reply, arp_request, between, plain
from sluice.names import Counter, DropReason, Meter, PuntReason


class PacketOut(StageTest):
    """A packet-out leaves unchanged by the port in its header, and counts as forwarded."""

    def runTest(self) -> None:
        frame = octets(plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1))
        for port in PORTS:
            self.switch.client.send(frame, self.switch.number(port))
            self._outcome_of_packet_out(port.place, frame)

    def _outcome_of_packet_out(self, place: int, frame: bytes) -> None:
        number = self.switch.number(place)
        polled = self.dataplane.poll(device_number=0, port_number=number, timeout=AWAIT_S)
        self.assertIsNotNone(polled.packet, f"nothing left by port {number}")
        self.assertEqual(self.padded(bytes(polled.packet)), self.padded(frame))
        outcome = self.settle(CLIENT)
        self.assertEqual(outcome.frames, [])
        self.assertEqual(outcome.changes, {(Counter.VERDICTS, DropReason.NONE): 1})


class VerdictsCountBytes(StageTest):
    """The counter `verdicts` counts the bytes of received frames, on Tofino including the frame checksum."""

    def _counted_of(self, reason: DropReason, frame: Packet) -> int:
        before = self.switch.bytes_of(Counter.VERDICTS, reason)
        self.inject(CLIENT, frame)
        self.settle(CLIENT)
        return self.switch.bytes_of(Counter.VERDICTS, reason) - before

    def runTest(self) -> None:
        for length in (18, 700, 1472):
            frame = plain(CLIENT_HOST, UNROUTED, payload=bytes(length))
            counted = len(octets(frame)) + self.switch.counted_checksum
            self.assertEqual(self._counted_of(DropReason.NO_ROUTE, frame), counted)
        # The fences of the harness count as forwarded, too, with the same number of bytes in each call. So the test
        # compares two calls.
        short, long = (
            self._counted_of(DropReason.NONE, plain(CLIENT_HOST, UPLINK_HOST.address, payload=bytes(length)))
            for length in (18, 918)
        )
        self.assertEqual(long - short, 900)


class PacketOutOfAnyKind(StageTest):
    """A packet-out is neither parsed nor changed, whether it is of another protocol, invalid, or ARP."""

    def runTest(self) -> None:
        bad = changed(Flow(WEB, S1).syn(), IP_version=6)
        request = layers(
            Ether(dst="ff:ff:ff:ff:ff:ff", src=CLIENT.mac),
            ARP(op=1, hwsrc=CLIENT.mac, psrc=CLIENT.address, pdst=ABSENT),
        )
        for frame in (octets(bad), octets(request), bytes(range(60))):
            self.switch.client.send(frame, self.switch.number(CLIENT))
            polled = self.dataplane.poll(device_number=0, port_number=self.switch.number(CLIENT), timeout=AWAIT_S)
            self.assertEqual(self.padded(bytes(polled.packet)), self.padded(frame))
            self.assertEqual(self.settle(CLIENT).changes, {(Counter.VERDICTS, DropReason.NONE): 1})


class Punting(StageTest):
    """Base class of the tests of the limit on packets to the controller."""

    def limit(self, reason: PuntReason, burst: int) -> None:
        """Let the switch send `burst` packets with this punt reason to the controller, and no more."""
        self.meter(Meter.PUNT_LIMIT, reason, cir=0, cburst=burst, pir=0, pburst=burst)

    def assertLimited(self, outcome: Outcome, drop: DropReason, punt: PuntReason) -> None:
        """Assert that the packet had a punt reason, but that the controller did not receive it."""
        self.assertEqual((outcome.frames, outcome.packets), ([], []))
        self.assertEqual(outcome.changes, {(Counter.VERDICTS, drop): 1, (Counter.PUNTS_LIMITED, punt): 1})


class PuntLimited(Punting):
    """An ARP reply above the rate of its punt reason is dropped, with a drop reason of its own."""

    def runTest(self) -> None:
        self.limit(PuntReason.ARP, 2)
        for _ in range(2):
            self.reports_sender(CLIENT, arp_reply(), PuntReason.ARP)
        self.spent()
        for _ in range(2):
            self.drops(CLIENT, arp_reply(), DropReason.PUNT_LIMITED, (Counter.PUNTS_LIMITED, PuntReason.ARP))
        self.assertEqual(self.switch.client.senders(0), [])


class SendersLimited(Punting):
    """If the rate of the punt reason `sender` is exceeded, senders of ARP requests are not reported.

    Requests for the router's address are still answered. Replies to the router have a punt reason of their own, and
    their senders are still reported.
    """

    def runTest(self) -> None:
        answer = arp_answer(CLIENT_HOST, CLIENT.address)
        limited = (Counter.PUNTS_LIMITED, PuntReason.SENDER)
        self.limit(PuntReason.SENDER, 2)
        self.reports_sender(CLIENT, arp_request(CLIENT_HOST, CLIENT.address), PuntReason.SENDER, answer=answer)
        self.reports_sender(CLIENT, arp_request(CLIENT_HOST, ABSENT), PuntReason.SENDER, drop=DropReason.ARP_IGNORED)
        self.spent()
        for _ in range(2):
            self.forwards(CLIENT, arp_request(CLIENT_HOST, CLIENT.address), CLIENT, answer, limited)
            self.drops(CLIENT, arp_request(CLIENT_HOST, ABSENT), DropReason.ARP_IGNORED, limited)
        self.reports_sender(CLIENT, arp_reply(), PuntReason.ARP)


class PuntLimitedKeepsReason(Punting):
    """A packet that is dropped for its TTL or for an unknown neighbour has the same drop reason above the limit."""

    def runTest(self) -> None:
        self.limit(PuntReason.TTL, 1)
        frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)
        self.spent()
        self.assertLimited(self.exchange(CLIENT, frame), DropReason.TTL_EXCEEDED, PuntReason.TTL)
        self.limit(PuntReason.NEIGHBOUR, 1)
        frame = plain(CLIENT_HOST, ABSENT)
        self.punts(
            CLIENT,
            frame,
            PuntReason.NEIGHBOUR,
            changed(frame, IP_ttl=63),
            drop=DropReason.NEIGHBOUR_UNRESOLVED,
        )
        self.spent()
        self.assertLimited(self.exchange(CLIENT, frame), DropReason.NEIGHBOUR_UNRESOLVED, PuntReason.NEIGHBOUR)


class PuntReasonsApart(Punting):
    """Many packets of one punt reason do not use the tokens of other punt reasons."""

    def runTest(self) -> None:
        self.limit(PuntReason.TTL, 1)
        frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)
        self.spent()
        self.assertLimited(self.exchange(CLIENT, frame), DropReason.TTL_EXCEEDED, PuntReason.TTL)
        self.reports_sender(CLIENT, arp_reply(), PuntReason.ARP)


class LimitSparesTraffic(Punting):
    """The limit applies only to packets for the controller, not to forwarded packets."""

    def runTest(self) -> None:
        self.limit(PuntReason.NONE, 1)
        self.limit(PuntReason.TTL, 1)
        self.spent()
        for _ in range(5):
            self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
