"""Stage `sampling`: destinations of packets towards inside, as clients addressed them, in a ring."""

from __future__ import annotations

from harness.base import StageTest, admitted, new, refused
from harness.flow import Flow
from harness.plan import CLIENT, CLIENT_HOST, D3, DNS, S1, S1_HOST, S2, S2_HOST, UPLINK_HOST, WEB, Host
from harness.probes import between
from sluice.addresses import IPV4_BITS, from_number
from sluice.names import SAMPLES, Counter, DropReason, Meter, Register

ALL = 65_536
HALF = ALL // 2

SENT = 2000
AT_LEAST, AT_MOST = 600, 1400
"""Samples of half of that many packets. On Tofino's model a draw depends on those before: the count of 400 packets has
a standard deviation of 34 (20 runs), that of independent draws 10. The bounds are 5 and 17 of these away from half."""


class Sampled(StageTest):
    """Base of the tests that look into the ring."""

    def count(self) -> int:
        """Destinations sampled since the ring was cleared."""
        return self.switch.registers.read([(Register.SAMPLE_NEXT, 0)])[0]

    def assertSampled(self, *destinations: str) -> None:
        """Exactly these, in order."""
        self.assertEqual(self.count(), len(destinations))
        values = self.switch.registers.read([(Register.SAMPLE_RING, place) for place in range(len(destinations) + 1)])
        found = [str(from_number(value, IPV4_BITS)) for value in values]
        self.assertEqual(found, [*destinations, "0.0.0.0"])

    def routes(self, source: Host, to: Host) -> None:
        """A datagram from a host to a host passes."""
        self.forwards(source.port, *between(source, to))


class OffByDefault(Sampled):
    """The program samples nothing until it is told to."""

    def runTest(self) -> None:
        self.sample(0)
        self.opens(Flow(WEB, S1))
        self.routes(CLIENT_HOST, S1_HOST)
        self.assertSampled()


class All(Sampled):
    """Every packet towards inside: requests and data to services by the service's address, and what is routed there."""

    def runTest(self) -> None:
        self.sample(ALL)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.client_sends(flow, flow.ack())
        self.routes(CLIENT_HOST, S2_HOST)
        self.routes(UPLINK_HOST, S1_HOST)
        query = Flow(DNS, D3)
        self.client_sends(query, query.request(b"query"), (Counter.UNPINNED_MID, DNS.id))
        self.assertSampled(WEB.address, WEB.address, S2_HOST.address, S1_HOST.address, DNS.address)


class NotFromInside(Sampled):
    """What comes from inside is not sampled: answers, and what servers send elsewhere."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.sample(ALL)
        self.server_sends(flow, flow.syn_ack(), (Register.LEDGER_SYNACK, S1.id))
        self.routes(S1_HOST, UPLINK_HOST)
        self.assertSampled()


class BeforeTheLimit(Sampled):
    """A refused request is sampled as well: the crowd is what asks, not what gets in."""

    def runTest(self) -> None:
        self.watch(S1_HOST.address, 1)
        self.watch(WEB.address, 2)
        self.meter(Meter.DESTINATION_LIMIT, 2, cir=0, cburst=1, pir=0, pburst=1)
        self.sample(ALL)
        first, late = Flow(WEB, S1, client_port=40001), Flow(WEB, S1, client_port=40002)
        self.client_sends(first, first.syn(), new(WEB, S1), admitted(2))
        self.spent()
        self.drops(
            CLIENT,
            late.syn(),
            DropReason.ADMISSION_REFUSED,
            (Counter.OFFERED, WEB.id),
            (Counter.REFUSED, WEB.id),
            refused(2),
        )
        self.assertSampled(WEB.address, WEB.address)


class SampledOnce(Sampled):
    """A packet that passes twice is sampled once."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.drain(S1)
        self.weigh(WEB, {S2: 1})
        self.sample(ALL)
        self.client_sends(flow.to(S2), flow.syn(), self.draws_again(WEB, S2), (Counter.MOVED, WEB.id))
        self.assertSampled(WEB.address)


class Half(Sampled):
    """Half of the packets, by chance."""

    def runTest(self) -> None:
        self.sample(HALF)
        frame = bytes(between(CLIENT_HOST, S1_HOST)[0])
        self.flood(CLIENT, (frame for _ in range(SENT)))
        # The fences of `flood` are for the router itself: not sampled.
        self.assertGreater(self.count(), AT_LEAST)
        self.assertLess(self.count(), AT_MOST)


class RingWraps(Sampled):
    """The newest destinations are kept, and the count goes on, past 2^32 too."""

    def runTest(self) -> None:
        self.sample(ALL)
        self.switch.registers.write(Register.SAMPLE_NEXT, 0, (1 << 32) - 1)
        self.routes(CLIENT_HOST, S1_HOST)
        self.routes(CLIENT_HOST, S2_HOST)
        self.assertEqual(self.count(), 1)
        last, first = self.switch.registers.read([(Register.SAMPLE_RING, SAMPLES - 1), (Register.SAMPLE_RING, 0)])
        self.assertEqual(str(from_number(last, IPV4_BITS)), S1_HOST.address)
        self.assertEqual(str(from_number(first, IPV4_BITS)), S2_HOST.address)
