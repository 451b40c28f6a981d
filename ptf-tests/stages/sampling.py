"""Tests of stage `sampling`: a ring of the destinations of packets to services and of routed packets from outside."""

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
"""Bounds of the number of samples if half of SENT packets are sampled.

On Tofino's model the random numbers depend on each other: the samples of 400 packets have a standard deviation of 34
(20 runs), instead of 10 for independent numbers. For SENT packets, the bounds differ from one half by 5 deviations of
the model, or 17 of independent numbers.
"""


class Sampled(StageTest):
    """Base class of the tests that read the ring of sampled destinations."""

    def count(self) -> int:
        """Return the number of destinations sampled since the ring was cleared."""
        return self.switch.registers.read([(Register.SAMPLE_NEXT, 0)])[0]

    def assertSampled(self, *destinations: str) -> None:
        """Assert that the ring contains exactly these destinations, in this order."""
        self.assertEqual(self.count(), len(destinations))
        values = self.switch.registers.read([(Register.SAMPLE_RING, place) for place in range(len(destinations) + 1)])
        addresses = [str(from_number(value, IPV4_BITS)) for value in values]
        self.assertEqual(addresses, [*destinations, "0.0.0.0"])

    def routes(self, source: Host, to: Host) -> None:
        """Send a datagram from one host to another; assert that it is forwarded."""
        self.forwards(source.port, *between(source, to))


class OffByDefault(Sampled):
    """With a share of 0, which is the default, the switch samples no destination."""

    def runTest(self) -> None:
        self.sample(0)
        self.opens(Flow(WEB, S1))
        self.routes(CLIENT_HOST, S1_HOST)
        self.assertSampled()


class All(Sampled):
    """Every packet to a service, and every routed packet from outside, is sampled, with its original destination."""

    def runTest(self) -> None:
        self.sample(ALL)
        flow = self.opens(Flow(WEB, S1))
        self.client_sends(flow, flow.ack())
        self.routes(CLIENT_HOST, S2_HOST)
        self.routes(UPLINK_HOST, S1_HOST)
        query = Flow(DNS, D3)
        self.client_sends(query, query.request(b"query"), (Counter.UNPINNED_MID, DNS.id))
        self.assertSampled(WEB.address, WEB.address, S2_HOST.address, S1_HOST.address, DNS.address)


class NotFromInside(Sampled):
    """Servers' answers, and routed packets from inside ports, are not sampled."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.sample(ALL)
        self.server_sends(flow, flow.syn_ack(), (Register.LEDGER_SYNACK, S1.id))
        self.routes(S1_HOST, UPLINK_HOST)
        self.assertSampled()


class BeforeTheLimit(Sampled):
    """A refused request is sampled, because a hot spot is what clients request, not what is admitted."""

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
    """A packet that passes the pipeline twice is sampled once."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.drains()
        self.sample(ALL)
        self.client_sends(flow.to(S2), flow.syn(), self.draws_again(WEB, S2), (Counter.MOVED, WEB.id))
        self.assertSampled(WEB.address)


class Half(Sampled):
    """With a share of one half, half of the packets are sampled at random."""

    def runTest(self) -> None:
        self.sample(HALF)
        frame = bytes(between(CLIENT_HOST, S1_HOST)[0])
        self.flood(CLIENT, (frame for _ in range(SENT)))
        # The fences of `flood` are sent to the router itself, and are not sampled.
        self.assertGreater(self.count(), AT_LEAST)
        self.assertLess(self.count(), AT_MOST)


class RingWraps(Sampled):
    """After the last cell of the ring, the first is written. The count of samples wraps to 0 at 2^32."""

    def runTest(self) -> None:
        self.sample(ALL)
        self.switch.registers.write(Register.SAMPLE_NEXT, 0, (1 << 32) - 1)
        self.routes(CLIENT_HOST, S1_HOST)
        self.routes(CLIENT_HOST, S2_HOST)
        self.assertEqual(self.count(), 1)
        last, first = self.switch.registers.read([(Register.SAMPLE_RING, SAMPLES - 1), (Register.SAMPLE_RING, 0)])
        self.assertEqual(str(from_number(last, IPV4_BITS)), S1_HOST.address)
        self.assertEqual(str(from_number(first, IPV4_BITS)), S2_HOST.address)
