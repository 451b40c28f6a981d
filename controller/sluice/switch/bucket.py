"""A token bucket as the switch's meters store it: whole numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket: its rate in tokens per second, and its size in tokens."""

    rate: int
    burst: int

    @classmethod
    def rounded(cls, rate: float, burst: float) -> Bucket:
        """Return the nearest bucket of whole numbers: a rate of at least 1 connection/s, and a size of at least 1
        connection."""
        return cls(max(1, round(rate)), max(1, round(burst)))

    def is_close(self, other: Bucket) -> bool:
        """Return whether two buckets are equal except for rounding: each number differs by at most 1 or by 1 %.

        A read of BMv2 returns 249 for 250, and hardware rounds more.

        A bucket that refuses everything is close only to another bucket that refuses everything.
        """
        if (self.burst == 0) != (other.burst == 0):
            return False
        return abs(self.rate - other.rate) <= max(1, self.rate // 100) and (
            abs(self.burst - other.burst) <= max(1, self.burst // 100)
        )
