"""A token bucket that lets events pass, for those who keep it themselves. Pure: times come in as seconds."""

from __future__ import annotations


class TokenBucket:
    """Filled with ``rate`` tokens a second up to ``burst``; full when it is set."""

    __slots__ = ("_at", "_tokens", "burst", "rate")

    def __init__(self, now_s: float, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at = burst, now_s

    def take(self, now_s: float) -> bool:
        """Whether one passes."""
        self._tokens = min(self.burst, self._tokens + (now_s - self._at) * self.rate)
        self._at = now_s
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True
