"""Stage `hop_limit`: decrements the TTL, before a packet that ends here changes any state."""

from __future__ import annotations

from harness.base import StageTest
from harness.flow import Flow
from harness.frames import changed, tagged
from harness.plan import ABSENT, CLIENT, CLIENT_HOST, S1, UPLINK_HOST, WEB
from harness.probes import plain, routed
from sluice.names import DropReason, PuntReason


class LastHop(StageTest):
    """A packet with TTL 2 is forwarded."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=2)
        self.forwards(CLIENT, frame, UPLINK_HOST.port, routed(frame, UPLINK_HOST))


class Exceeded(StageTest):
    """Packets with TTL 1 and 0 end here; the controller gets the packet as it was received."""

    def runTest(self) -> None:
        for ttl in (1, 0):
            frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=ttl)
            self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)


class ExceededTagged(StageTest):
    """The controller gets the packet with its tag, so that its answer can return."""

    def runTest(self) -> None:
        frame = tagged(plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1), 42, 3)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)


class ExceededOnWayToService(StageTest):
    """A SYN that ends here is not translated, offered, pinned or counted."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        frame = changed(flow.syn(), IP_ttl=1)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)
        self.assertNotPinned(flow.key)


class ExceededOnWayBack(StageTest):
    """A server's answer that ends here reaches the controller untranslated, and is not counted in the ledger."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        frame = changed(flow.syn_ack(), IP_ttl=1)
        self.punts(S1.host.port, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)


class ExceededBeforeRouting(StageTest):
    """The neighbour of a packet that ends here is not resolved."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, ABSENT, ttl=1)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)
