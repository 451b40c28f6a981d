"""Tests of stage `admission`: a token bucket limits the new connections of each service."""

from __future__ import annotations

from harness.base import StageTest, again, unpinned_mid
from harness.flow import Flow
from harness.plan import CLIENT, DNS, S1, S3, WEB, Service
from harness.slots import colliding
from sluice.names import Counter, DropReason, Meter, PinState

OFFERED_WEB = (Counter.OFFERED, WEB.id)
REFUSED_WEB = (Counter.REFUSED, WEB.id)

NEVER = 0
"""Refill rate: the bucket is never refilled, so only the burst is admitted."""


class Limited(StageTest):
    """Base class of the tests in which the bucket of a service holds few tokens and is never refilled."""

    def limit(self, service: Service, burst: int, committed: int | None = None) -> None:
        """Let the switch admit `burst` SYNs, of which the first `committed` (None: all) are green."""
        self.meter(Meter.ADMISSION, service.id, cir=NEVER, cburst=committed or burst, pir=NEVER, pburst=burst)

    def refuses(self, flow: Flow) -> None:
        """Send a SYN; assert that it is refused: counted as refused, but neither pinned nor counted for a server."""
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, OFFERED_WEB, REFUSED_WEB)
        self.assertNotPinned(flow.key)


class UnconfiguredIsGreen(StageTest):
    """Without a configured bucket, every SYN is admitted."""

    def runTest(self) -> None:
        for port in range(40000, 40030):
            self.opens(Flow(WEB, S1, client_port=port))


class RedIsRefused(Limited):
    """A new connection above the rate is refused, and so is its repeated SYN: a refused SYN changes no state."""

    def runTest(self) -> None:
        self.limit(WEB, 2)
        self.opens(Flow(WEB, S1, client_port=40001))
        self.opens(Flow(WEB, S1, client_port=40002))
        self.spent()
        refused = Flow(WEB, S1, client_port=40003)
        self.refuses(refused)
        self.refuses(refused)


class YellowIsAdmitted(Limited):
    """Of one green, three yellow and one red SYN only the red SYN is refused."""

    def runTest(self) -> None:
        self.limit(WEB, 4, committed=1)
        for port in range(40001, 40005):
            self.opens(Flow(WEB, S1, client_port=port))
        self.refuses(Flow(WEB, S1, client_port=40005))


class RedSynOfPinned(Limited):
    """The retransmitted SYN of an admitted connection is forwarded, whatever its colour."""

    def runTest(self) -> None:
        self.limit(WEB, 1)
        flow = self.opens(Flow(WEB, S1))
        self.spent()
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)
        self.refuses(Flow(WEB, S1, client_port=40009))


class RedSynInSecondWay(Limited):
    """The retransmitted SYN of a connection pinned in way 2 (the second hash) is forwarded, whatever its colour."""

    def runTest(self) -> None:
        first = Flow(WEB, S1)
        second = Flow.of(next(colliding(first.key, slot_1=first.key.slot_1)), WEB, S1)
        self.opens(first)
        self.opens(second)
        self.limit(WEB, 1)
        self.opens(Flow(WEB, S1, client_port=40009))
        self.spent()
        self.client_sends(second, second.syn(), again(WEB, S1))
        self.assertPinned(second, PinState.PENDING, way=2)


class RedSynOfExpired(Limited):
    """A red SYN is refused if the pin of its connection has expired."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.limit(WEB, 1)
        self.opens(Flow(WEB, S1, client_port=40009))
        self.spent()
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, OFFERED_WEB, REFUSED_WEB)


class OnlySyns(Limited):
    """Packets other than SYNs are not metered, whether their connections are pinned or not."""

    def runTest(self) -> None:
        self.limit(WEB, 1)
        flow = self.opens(Flow(WEB, S1))
        self.spent()
        self.refuses(Flow(WEB, S1, client_port=40009))
        self.completes(flow)
        self.client_sends(flow, flow.data())
        stray = Flow(WEB, S3, client_port=40010)
        self.client_sends(stray, stray.data(), unpinned_mid(WEB))


class EachServiceItsOwn(Limited):
    """Each service has its own bucket, because the index in the meter is the number of the service."""

    def runTest(self) -> None:
        self.limit(DNS, 1)
        self.spent()
        for port in (40001, 40002, 40003):
            self.opens(Flow(WEB, S1, client_port=port))


class LiftedAgain(Limited):
    """All SYNs are admitted again after the configuration of a bucket has been removed."""

    def runTest(self) -> None:
        self.limit(WEB, 1)
        self.opens(Flow(WEB, S1, client_port=40001))
        self.spent()
        self.refuses(Flow(WEB, S1, client_port=40002))
        self.doCleanups()
        for port in (40002, 40003, 40004):
            self.opens(Flow(WEB, S1, client_port=port))
