"""A token bucket outside the switch. Pure: times are passed in as seconds."""

from __future__ import annotations


class TokenBucket:
    """A bucket that gains ``rate`` tokens per second and contains at most ``burst``. It is full at first."""

    __slots__ = ("_at", "_tokens", "burst", "rate")

    def __init__(self, now_s: float, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at = burst, now_s

    def take(self, now_s: float) -> bool:
        """Remove a token if the bucket contains one, and return whether it did."""
        self._tokens = min(self.burst, self._tokens + (now_s - self._at) * self.rate)
        self._at = now_s
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
