"""What the controller says about the switch at one moment, as the lab uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

COUNTER_SPACE = 1 << 32
"""The switch's ledger counts in 32 bits and wraps."""


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
        return Counts(
            **{
                field.name: (getattr(self, field.name) - getattr(earlier, field.name)) % COUNTER_SPACE
                for field in fields(Counts)
            }
        )

    def r(self) -> float | None:
        """Return R = (SYN - SYN-ACK) / SYN-ACK (Ohta & Andou, equation 2); None without a SYN-ACK."""
        return (self.syn - self.synack) / self.synack if self.synack else None


@dataclass(frozen=True, slots=True)
class Observation:
    """One reading; time in seconds on the clock of time.time()."""

    time: float
    ratios: Mapping[str, float]
    r: Mapping[str, float | None]
    counts: Mapping[str, Counts]
    drops: Mapping[str, int]
    forwarded: int
    punts: Mapping[str, int]
    injected: int
    """Packets that the controller had sent."""


def pool_r(counts: Mapping[str, Counts]) -> float | None:
    """Return R of all servers together."""
    syn = sum(one.syn for one in counts.values())
    synack = sum(one.synack for one in counts.values())
    return (syn - synack) / synack if synack else None
