"""Did the switch lose anything for lack of capacity?  By conservation of packets, for any switch.  Pure.

The kernel counts at the switch's interfaces what came in and what went out; the pipeline counts a verdict for
every packet that it took.  What came in and has no verdict was lost before the pipeline; what was forwarded and did
not go out was lost after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.names import PuntReason


@dataclass(frozen=True, slots=True)
class PacketCounts:
    """Packets at one quiet moment, since the switch started."""

    received: int
    """By the interfaces of all ports."""
    sent: int
    """By the interfaces of all ports."""
    forwarded: int
    """Verdict: to a port."""
    dropped: int
    """Verdict: dropped, any reason."""
    punted: int
    """To the controller only.  These have the verdict of a forwarded packet; what is dropped and punted is dropped."""
    injected: int = 0
    """By the controller: they have a verdict, and no interface received them."""

    def since(self, earlier: PacketCounts) -> PacketCounts:
        """Return what was counted since an earlier moment."""
        return PacketCounts(
            self.received - earlier.received,
            self.sent - earlier.sent,
            self.forwarded - earlier.forwarded,
            self.dropped - earlier.dropped,
            self.punted - earlier.punted,
            self.injected - earlier.injected,
        )

    def lost_before(self) -> int:
        """Return how many packets came in and have no verdict."""
        return self.received + self.injected - self.forwarded - self.dropped

    def lost_after(self) -> int:
        """Return how many packets were forwarded and did not go out."""
        return self.forwarded - self.punted - self.sent

    def conserved(self) -> bool:
        """Say whether every packet is accounted for."""
        return self.lost_before() == 0 and self.lost_after() == 0


def counted(
    interfaces: Mapping[str, tuple[int, int, int]],
    forwarded: int,
    drops: Mapping[str, int],
    punts: Mapping[str, int],
    injected: int,
) -> PacketCounts:
    """Put together what interfaces have counted (name -> received, sent, dropped) and the pipeline's verdicts."""
    ports = [packets for name, packets in interfaces.items() if name != "lo"]
    return PacketCounts(
        received=sum(received for received, _, _ in ports),
        sent=sum(sent for _, sent, _ in ports),
        forwarded=forwarded,
        dropped=sum(drops.values()),
        punted=punts.get(PuntReason.ARP.name.lower(), 0),
        injected=injected,
    )
