"""What is read every second of a run: the bottleneck's and the switch's counts, CPU and memory of switch and
controller, memory of the slow server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """Cumulative, since the filter was set."""

    sent_packets: int
    sent_bytes: int
    dropped_packets: int

    def since(self, earlier: LinkCounts) -> LinkCounts:
        """Return what was counted since an earlier moment."""
        return LinkCounts(
            self.sent_packets - earlier.sent_packets,
            self.sent_bytes - earlier.sent_bytes,
            self.dropped_packets - earlier.dropped_packets,
        )

    def loss(self) -> float:
        """Part of the packets offered to the link that it dropped."""
        offered = self.sent_packets + self.dropped_packets
        return self.dropped_packets / offered if offered else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading; everything but memory is cumulative."""

    time_s: float
    """Since the load began."""
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    switch_cpu_s: float
    switch_bytes: int
    controller_cpu_s: float
    controller_bytes: int
    slow_bytes: int
    """What the slow server's cgroup is charged."""
    bystander_refused: int | None
    """SYNs to the bystander that the switch refused, by the controller's latest status; None where it counts those
    of all destinations together."""
    received_packets: int | None = None
    """That came to the switch; None where nobody counted them (older runs, simulated ones)."""

    @property
    def link(self) -> LinkCounts:
        """The bottleneck's counts."""
        return LinkCounts(self.sent_packets, self.sent_bytes, self.dropped_packets)


def write_samples(path: Path, samples: Sequence[Sample]) -> None:
    """Write the readings."""
    header = ",".join(field.name for field in fields(Sample))
    lines = [
        ",".join(
            "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
            for value in astuple(one)
        )
        for one in samples
    ]
    path.write_text("\n".join([header, *lines]) + "\n")


def read_samples(path: Path) -> list[Sample]:
    """Read what `write_samples` wrote."""
    found: list[Sample] = []
    for line in path.read_text().splitlines()[1:]:
        time_s, packets, size, drops, switch_cpu, switch_memory, *rest = line.split(",")
        controller_cpu, controller_memory, slow_memory, refused, *newer = rest
        found.append(
            Sample(
                float(time_s),
                int(packets),
                int(size),
                int(drops),
                float(switch_cpu),
                int(switch_memory),
                float(controller_cpu),
                int(controller_memory),
                int(slow_memory),
                int(refused) if refused else None,
                int(newer[0]) if newer and newer[0] else None,
            )
        )
    return found


def at(samples: Sequence[Sample], time_s: float) -> Sample:
    """Return the first sample at or after a time, or the last one; ValueError if there is none."""
    if not samples:
        raise ValueError("no samples")
    return next((one for one in samples if one.time_s >= time_s), samples[-1])
