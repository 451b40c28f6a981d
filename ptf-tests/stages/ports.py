"""Stage `ports`: is the frame for the router, and which protocol is it?"""

from __future__ import annotations

from harness.base import StageTest
from harness.flow import Flow
from harness.frames import BROADCAST, changed
from harness.plan import CLIENT, CLIENT_HOST, S1, SPARE_PLACE, UPLINK, UPLINK_HOST, WEB
from harness.probes import between
from sluice.names import DropReason


class UnknownPort(StageTest):
    """A port that is not configured takes nothing, not even frames for another port's address."""

    def runTest(self) -> None:
        self.drops(SPARE_PLACE, Flow(WEB, S1).syn(), DropReason.PORT_UNKNOWN)


class OtherMac(StageTest):
    """A frame for somebody else, as a hub or a flooding switch delivers it."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).syn()
        self.drops(CLIENT, changed(frame, Ether_dst="02:00:00:00:01:99"), DropReason.NOT_FOR_US)


class MacOfOtherPort(StageTest):
    """Each port has its own address; another port's is not for us here."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), Ether_dst=UPLINK.mac), DropReason.NOT_FOR_US)


class BroadcastIpv4(StageTest):
    """Broadcast is for ARP only."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), Ether_dst=BROADCAST), DropReason.NOT_FOR_US)


class OurMac(StageTest):
    """A frame for the router is routed, each way."""

    def runTest(self) -> None:
        self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
        self.forwards(UPLINK, *between(UPLINK_HOST, CLIENT_HOST))
