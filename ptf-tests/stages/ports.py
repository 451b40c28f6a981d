"""Tests of stage `ports`: which frames are for the router, and which protocol a frame carries."""

from __future__ import annotations

from harness.base import StageTest
from harness.flow import Flow
from harness.frames import BROADCAST, changed
from harness.plan import CLIENT, CLIENT_HOST, S1, SPARE_PLACE, UPLINK, UPLINK_HOST, WEB
from harness.probes import between
from sluice.names import DropReason


class UnknownPort(StageTest):
    """A port that is not configured accepts no frame, not even one to another port's MAC address."""

    def runTest(self) -> None:
        self.drops(SPARE_PLACE, Flow(WEB, S1).syn(), DropReason.PORT_UNKNOWN)


class OtherMac(StageTest):
    """A frame to another station, as a hub or a flooding switch delivers it, is dropped."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).syn()
        self.drops(CLIENT, changed(frame, Ether_dst="02:00:00:00:01:99"), DropReason.NOT_FOR_US)


class MacOfOtherPort(StageTest):
    """A frame to the MAC address of another port of the router is dropped."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), Ether_dst=UPLINK.mac), DropReason.NOT_FOR_US)


class BroadcastIpv4(StageTest):
    """An IPv4 packet in a broadcast frame is dropped; only ARP may be broadcast."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), Ether_dst=BROADCAST), DropReason.NOT_FOR_US)


class OurMac(StageTest):
    """A frame to the router is routed, in both directions."""

    def runTest(self) -> None:
        self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
        self.forwards(UPLINK, *between(UPLINK_HOST, CLIENT_HOST))
