"""Stage `ports`: is the frame for the router, and which protocol is it?"""

from __future__ import annotations

from harness.base import StageTest
from harness.flow import Flow
from harness.frames import BROADCAST, changed
from harness.plan import CLIENT, CLIENT_HOST, S1, SPARE_PLACE, UPLINK, UPLINK_HOST, WEB
from harness.probes import between
from sluice.names import DropReason


class UnknownPort(StageTest):
    """A port that is not configured accepts no frame, not even for another port's address."""

    def runTest(self) -> None:
        self.drops(SPARE_PLACE, Flow(WEB, S1).syn(), DropReason.PORT_UNKNOWN)


class OtherMac(StageTest):
    """A frame for another station, as a hub or a flooding switch delivers it, is dropped."""

    def runTest(self) -> None:
        frame = Flow(WEB, S1).syn()
        self.drops(CLIENT, changed(frame, Ether_dst="02:00:00:00:01:99"), DropReason.NOT_FOR_US)


class MacOfOtherPort(StageTest):
    """Each port has its own MAC address: a frame for another port's address is not for us."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), Ether_dst=UPLINK.mac), DropReason.NOT_FOR_US)


class BroadcastIpv4(StageTest):
    """Broadcast is for ARP only."""

    def runTest(self) -> None:
        self.drops(CLIENT, changed(Flow(WEB, S1).syn(), Ether_dst=BROADCAST), DropReason.NOT_FOR_US)


class OurMac(StageTest):
    """A frame for the router is routed, in both directions."""

    def runTest(self) -> None:
        self.forwards(CLIENT, *between(CLIENT_HOST, UPLINK_HOST))
        self.forwards(UPLINK, *between(UPLINK_HOST, CLIENT_HOST))
