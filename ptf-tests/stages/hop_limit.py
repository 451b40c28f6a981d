"""Tests of stage `hop_limit`, which decrements the TTL, before an expired packet can change any state."""

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
    """Packets with TTL 1 and 0 are not forwarded; the controller receives the packet as the switch received it."""

    def runTest(self) -> None:
        for ttl in (1, 0):
            frame = plain(CLIENT_HOST, UPLINK_HOST.address, ttl=ttl)
            self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)


class ExceededTagged(StageTest):
    """The controller receives an expired packet with its tag, which the controller's answer needs."""

    def runTest(self) -> None:
        frame = tagged(plain(CLIENT_HOST, UPLINK_HOST.address, ttl=1), 42, 3)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)


class ExceededOnWayToService(StageTest):
    """A SYN whose TTL has expired is not translated and not pinned, and counts neither as offered nor for a server."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        frame = changed(flow.syn(), IP_ttl=1)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)
        self.assertNotPinned(flow.key)


class ExceededOnWayBack(StageTest):
    """A server's answer whose TTL has expired is sent to the controller untranslated, and is not counted."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        frame = changed(flow.syn_ack(), IP_ttl=1)
        self.punts(S1.host.port, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)


class ExceededBeforeRouting(StageTest):
    """The switch does not ask the controller to resolve the next hop of a packet whose TTL has expired."""

    def runTest(self) -> None:
        frame = plain(CLIENT_HOST, ABSENT, ttl=1)
        self.punts(CLIENT, frame, PuntReason.TTL, frame, drop=DropReason.TTL_EXCEEDED)
