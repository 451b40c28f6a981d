"""Counts of the switch: segments of each server, as the controller reports them, and packets of the switch.

By conservation of packets it follows whether the switch lost any for lack of capacity. The kernel counts at the
switch's interfaces what came in and went out; the pipeline counts a verdict for every packet that it took. What came in
and has no verdict was lost before the pipeline; what was forwarded and did not go out was lost after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from sluice.names import PuntReason

from topo.plan.network import SERVICE
from topo.testbed.errors import SetupError
from topo.testbed.processes import await_true

COUNTER_SPACE = 1 << 32
"""The switch's ledger counts in 32 bits and wraps."""
QUIET_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Segments of one server since the switch started, or between two moments."""

    syn: int
    synack: int
    synack_again: int
    completed: int
    reset: int

    def since(self, earlier: Counts) -> Counts:
        """Return what was counted since an earlier moment (right across one wrap)."""
        names = (field.name for field in fields(Counts))
        return Counts(*((getattr(self, name) - getattr(earlier, name)) % COUNTER_SPACE for name in names))

    def r(self) -> float | None:
        """Return R = (SYN - SYN-ACK) / SYN-ACK (Ohta & Andou, equation 2); None without a SYN-ACK."""
        return (self.syn - self.synack) / self.synack if self.synack else None


def pool_r(counts: Mapping[str, Counts]) -> float | None:
    """Return R of all servers together."""
    servers = counts.values()
    return Counts(sum(server.syn for server in servers), sum(server.synack for server in servers), 0, 0, 0).r()


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading of the controller's status; time in seconds on the clock of time.time()."""

    time: float
    ratios: Mapping[str, float]
    r: Mapping[str, float | None]
    counts: Mapping[str, Counts]
    drops: Mapping[str, int]
    forwarded: int
    punts: Mapping[str, int]
    injected: int
    """Packets that the controller has sent."""


def read_status(status: Mapping[str, Any], now: float) -> Observation:
    """Read the answer to `status`; raise SetupError while the controller does not lead the switch."""
    if "services" not in status:
        raise SetupError(f"the controller has lost the switch: it is {status['role']}")
    (service,) = (entry for entry in status["services"] if entry["name"] == SERVICE)
    servers = {server["name"]: server for server in service["servers"]}
    packets = status["packets"]
    return Observation(
        time=now,
        ratios={name: float(server["ratio"]) for name, server in servers.items()},
        r={name: None if server["r"] is None else float(server["r"]) for name, server in servers.items()},
        counts={
            name: Counts(*(int(server[field.name]) for field in fields(Counts))) for name, server in servers.items()
        },
        **{name: packets[name] for name in ("drops", "forwarded", "punts", "injected")},
    )


@dataclass(frozen=True, slots=True)
class PacketCounts:
    """Packets since the switch started, read while no packet passes."""

    received: int
    """By the interfaces of all ports."""
    sent: int
    """By the interfaces of all ports."""
    forwarded: int
    """Packets with the verdict: forward to a port."""
    dropped: int
    """Packets with the verdict: drop, for any reason."""
    punted: int
    """Packets sent to the controller only.  Their verdict is to forward; a packet dropped and sent to the
    controller counts as dropped."""
    injected: int = 0
    """Packets from the controller: they have a verdict, and no interface received them."""

    def since(self, earlier: PacketCounts) -> PacketCounts:
        """Return what was counted since an earlier moment."""
        names = (field.name for field in fields(PacketCounts))
        return PacketCounts(*(getattr(self, name) - getattr(earlier, name) for name in names))

    def lost_before(self) -> int:
        """Return how many packets came in and have no verdict."""
        return self.received + self.injected - self.forwarded - self.dropped

    def lost_after(self) -> int:
        """Return how many packets were forwarded and did not go out."""
        return self.forwarded - self.punted - self.sent

    def conserved(self) -> bool:
        """Return whether every packet is accounted for."""
        return self.lost_before() == 0 and self.lost_after() == 0


def packet_counts(interfaces: Mapping[str, tuple[int, int, int]], packets: Mapping[str, Any]) -> PacketCounts:
    """Return what the switch's interfaces have counted (name -> received, sent, dropped), with the pipeline's verdicts.

    `packets` is the block of that name of the controller's status.
    """
    ports = [counted for name, counted in interfaces.items() if name != "lo"]
    return PacketCounts(
        received=sum(received for received, _, _ in ports),
        sent=sum(sent for _, sent, _ in ports),
        forwarded=packets["forwarded"],
        dropped=sum(packets["drops"].values()),
        punted=packets["punts"].get(PuntReason.ARP.name.lower(), 0),
        injected=packets["injected"],
    )


def quiet_counts(read: Callable[[], PacketCounts]) -> PacketCounts:
    """Return a reading once two readings in a row are equal; raise SetupError if they never are."""
    readings = [read(), read()]

    def quiet() -> bool:
        readings.append(read())
        return readings[-1] == readings[-2]

    await_true("no packets at the switch", quiet, QUIET_TIMEOUT_S)
    return readings[-1]
