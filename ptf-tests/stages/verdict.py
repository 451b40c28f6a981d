"""The verdict: packets to and from the controller, and the limit on them."""

from __future__ import annotations

from harness.base import AWAIT_S, Outcome, StageTest
from harness.flow import Flow
from harness.frames import ARP, BROADCAST, Ether, Packet, changed, layers, octets
from harness.plan import ABSENT, CLIENT, CLIENT_HOST, PORTS, S1, UNROUTED, UPLINK_HOST, WEB
from harness.probes import between, ether, plain
from sluice.names import Counter, DropReason, Meter, PuntReason


def arp_reply() -> Packet:
    """A neighbour to learn."""
    return layers(
        ether(CLIENT_HOST),
        ARP(op=2, hwsrc=CLIENT_HOST.mac, psrc=CLIENT_HOST.address, hwdst=CLIENT.mac, pdst=CLIENT.address),
    )


class PacketOut(StageTest):
    """The controller's packets leave by the port it names, as they are, and count as forwarded."""

    def runTest(self) -> None:
        frame = octets(plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1))
        for port in PORTS:
            self.switch.client.send(frame, self.switch.number(port))
            self._outcome_of_packet_out(port.place, frame)

    def _outcome_of_packet_out(self, place: int, frame: bytes) -> None:
        number = self.switch.number(place)
        found = self.dataplane.poll(device_number=0, port_number=number, timeout=AWAIT_S)
        self.assertIsNotNone(found.packet, f"nothing left by port {number}")
        self.assertEqual(self.padded(bytes(found.packet)), self.padded(frame))
        outcome = self.settle(CLIENT)
        self.assertEqual(outcome.frames, [])
        self.assertEqual(outcome.changes, {(Counter.VERDICTS, DropReason.NONE): 1})


class VerdictsCountBytes(StageTest):
    """Of frames as they came in, from the Ethernet header on."""

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
        # Beside a frame that is forwarded the harness's own are: as many bytes each time.
        short, long = (
            self._counted_of(DropReason.NONE, plain(CLIENT_HOST, UPLINK_HOST.address, payload=bytes(length)))
            for length in (18, 918)
        )
        self.assertEqual(long - short, 900)


class PacketOutOfAnyKind(StageTest):
    """Nothing that the controller sends is parsed, changed or judged, be it another protocol, a bad header or ARP."""

    def runTest(self) -> None:
        bad = changed(Flow(WEB, S1).syn(), IP_version=6)
        request = layers(
            Ether(dst="ff:ff:ff:ff:ff:ff", src=CLIENT.mac),
            ARP(op=1, hwsrc=CLIENT.mac, psrc=CLIENT.address, pdst=ABSENT),
        )
        for frame in (octets(bad), octets(request), bytes(range(60))):
            self.switch.client.send(frame, self.switch.number(CLIENT))
            found = self.dataplane.poll(device_number=0, port_number=self.switch.number(CLIENT), timeout=AWAIT_S)
            self.assertEqual(self.padded(bytes(found.packet)), self.padded(frame))
            self.assertEqual(self.settle(CLIENT).changes, {(Counter.VERDICTS, DropReason.NONE): 1})


class Punting(StageTest):
    """Base of the tests of the limit."""

    def limit(self, reason: PuntReason, burst: int) -> None:
        """Let ``burst`` packets to the controller pass, and no more."""
        self.meter(Meter.PUNT_LIMIT, reason, cir=0, cburst=burst, pir=0, pburst=burst)

    def assertLimited(self, outcome: Outcome, drop: DropReason, punt: PuntReason) -> None:
        """The packet was meant for the controller and did not get there."""
        self.assertEqual((outcome.frames, outcome.packets), ([], []))
        self.assertEqual(outcome.changes, {(Counter.VERDICTS, drop): 1, (Counter.PUNTS_LIMITED, punt): 1})


def arp_request(address: str) -> Packet:
    """A question for an address, ours or another one."""
    return layers(
        Ether(dst=BROADCAST, src=CLIENT_HOST.mac),
        ARP(op=1, hwsrc=CLIENT_HOST.mac, psrc=CLIENT_HOST.address, hwdst="00:00:00:00:00:00", pdst=address),
    )


class PuntLimited(Punting):
    """Above its rate an ARP reply is a drop with a reason of its own."""

    def runTest(self) -> None:
        self.limit(PuntReason.ARP, 2)
        for _ in range(2):
            self.hears(CLIENT, arp_reply(), PuntReason.ARP)
        self.spent()
        for _ in range(2):
            self.drops(CLIENT, arp_reply(), DropReason.PUNT_LIMITED, (Counter.PUNTS_LIMITED, PuntReason.ARP))
        self.assertEqual(self.switch.client.senders(0), [])


class SendersLimited(Punting):
    """Above the rate of what is overheard nobody is told; requests are answered as ever, and answers to us heard."""

    def runTest(self) -> None:
        answer = layers(
            Ether(dst=CLIENT_HOST.mac, src=CLIENT.mac),
            ARP(op=2, hwsrc=CLIENT.mac, psrc=CLIENT.address, hwdst=CLIENT_HOST.mac, pdst=CLIENT_HOST.address),
        )
        limited = (Counter.PUNTS_LIMITED, PuntReason.SENDER)
        self.limit(PuntReason.SENDER, 2)
        self.hears(CLIENT, arp_request(CLIENT.address), PuntReason.SENDER, answer=answer)
        self.hears(CLIENT, arp_request(ABSENT), PuntReason.SENDER, drop=DropReason.ARP_IGNORED)
        self.spent()
        for _ in range(2):
            self.forwards(CLIENT, arp_request(CLIENT.address), CLIENT, answer, limited)
            self.drops(CLIENT, arp_request(ABSENT), DropReason.ARP_IGNORED, limited)
        self.hears(CLIENT, arp_reply(), PuntReason.ARP)


class PuntLimitedKeepsReason(Punting):
    """What was to be dropped anyway keeps its reason: hop limit, neighbour."""

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
            next_hop=ABSENT,
        )
        self.spent()
        self.assertLimited(self.exchange(CLIENT, frame), DropReason.NEIGHBOUR_UNRESOLVED, PuntReason.NEIGHBOUR)


class PuntReasonsApart(Punting):
    """A flood of one kind leaves the others their rate."""

    def runTest(self) -> None:
        self.limit(PuntReason.TTL, 1)
        frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)
        self.spent()
        self.assertLimited(self.exchange(CLIENT, frame), DropReason.TTL_EXCEEDED, PuntReason.TTL)
        self.hears(CLIENT, arp_reply(), PuntReason.ARP)


class LimitSparesTraffic(Punting):
    """The limit is the controller's; traffic has none."""

    def runTest(self) -> None:
        self.limit(PuntReason.NONE, 1)
        self.limit(PuntReason.TTL, 1)
        self.spent()
        for _ in range(5):
            self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
