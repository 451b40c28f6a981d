"""Counters of the switch: segments of each server, as the controller reports them, and packets of all ports.

The conservation of packets shows whether the switch lost packets for lack of capacity. The kernel counts the packets
received and sent at the switch's interfaces; the pipeline counts a verdict for every packet that it processed. A
received packet without a verdict was lost before the pipeline; a packet that was forwarded but not sent was lost after
the pipeline.
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
"""Number of values of the switch's counters of segments, which have 32 bits and wrap."""
QUIET_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of a server's segments since the switch started, or between two readings.

    They are: SYNs, first and repeated SYN-ACKs, ACKs of the client that complete a handshake, and RSTs of the server.
    """

    syn: int
    synack: int
    synack_again: int
    completed: int
    reset: int

    def since(self, earlier: Counts) -> Counts:
        """Return the difference to an earlier reading; the result is correct across one wrap of a counter."""
        names = (field.name for field in fields(Counts))
        return Counts(*((getattr(self, name) - getattr(earlier, name)) % COUNTER_SPACE for name in names))

    def r(self) -> float | None:
        """Return R = (SYN - SYN-ACK) / SYN-ACK (Ohta & Andou, equation 2); None if there was no SYN-ACK."""
        return (self.syn - self.synack) / self.synack if self.synack else None


def pool_r(counts: Mapping[str, Counts]) -> float | None:
    """Return R of all servers together; None if no server sent a SYN-ACK."""
    servers = counts.values()
    return Counts(sum(server.syn for server in servers), sum(server.synack for server in servers), 0, 0, 0).r()


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading of the controller's status; `time` is in seconds, on the clock of time.time()."""

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
    """Convert the controller's answer to `status`; raise SetupError if the controller is not the switch's primary."""
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
    """Packets that the interfaces of all ports have received."""
    sent: int
    """Packets that the interfaces of all ports have sent."""
    forwarded: int
    """Packets with the verdict: forward, to a port or to the controller only."""
    dropped: int
    """Packets with the verdict: drop, for any reason."""
    punted: int
    """Packets sent to the controller only, which count as forwarded; a packet that is dropped and also sent to the
    controller counts as dropped."""
    injected: int = 0
    """Packets from the controller; these packets have a verdict, but no interface received them."""

    def since(self, earlier: PacketCounts) -> PacketCounts:
        """Return the difference to an earlier reading."""
        names = (field.name for field in fields(PacketCounts))
        return PacketCounts(*(getattr(self, name) - getattr(earlier, name) for name in names))

    def lost_before(self) -> int:
        """Return the number of packets that were received (or injected) and have no verdict."""
        return self.received + self.injected - self.forwarded - self.dropped

    def lost_after(self) -> int:
        """Return the number of packets that were forwarded to a port and not sent."""
        return self.forwarded - self.punted - self.sent

    def conserved(self) -> bool:
        """Return whether every packet is accounted for."""
        return self.lost_before() == 0 and self.lost_after() == 0


def packet_counts(interfaces: Mapping[str, tuple[int, int, int]], packets: Mapping[str, Any]) -> PacketCounts:
    """Return the packet counts of the switch from the counters of its interfaces and the pipeline's verdicts.

    `interfaces` maps a name to packets received, sent and dropped; `packets` is the block `packets` of the controller's
    status.
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
    """Read the counters until two successive readings are equal, and return the last one; raise SetupError after
    QUIET_TIMEOUT_S."""
    readings = [read(), read()]

    def quiet() -> bool:
        readings.append(read())
        return readings[-1] == readings[-2]

    await_true("no packets at the switch", quiet, QUIET_TIMEOUT_S)
    return readings[-1]
