"""A token bucket in virtual time."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.news import Limit
from sluice.switch.bucket import Bucket


@dataclass
class TokenBucket:
    """A token bucket in the switch. It admits all requests until it is set, and is full after each change."""

    seconds: float
    """Length of a step."""
    setting: Limit | Bucket | None = None
    tokens: float = 0.0

    def set(self, setting: Limit | Bucket | None) -> None:
        if setting != self.setting:
            self.setting, self.tokens = setting, float(setting.burst) if setting else 0.0

    def admit(self, wanting: int) -> int:
        """Return how many of the requests that arrive within a step pass."""
        if self.setting is None:
            return wanting
        self.tokens += self.setting.rate * self.seconds
        admitted = min(wanting, int(self.tokens))
        self.tokens = min(self.tokens - admitted, float(self.setting.burst))
        return admitted
