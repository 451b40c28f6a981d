"""A token bucket in virtual time, as in a meter of the switch."""

from __future__ import annotations

from dataclasses import dataclass

from sluice.news import Limit
from sluice.switch.bucket import Bucket


@dataclass
class TokenBucket:
    """A token bucket in the switch: it admits all requests until it is configured; each new configuration fills it."""

    seconds: float
    """Length of a simulation step in seconds."""
    setting: Limit | Bucket | None = None
    tokens: float = 0.0

    def set(self, setting: Limit | Bucket | None) -> None:
        if setting != self.setting:
            self.setting, self.tokens = setting, float(setting.burst) if setting else 0.0

    def admit(self, wanting: int) -> int:
        """Simulate one step, in which `wanting` requests arrive; return the number of admitted requests."""
        if self.setting is None:
            return wanting
        self.tokens += self.setting.rate * self.seconds
        admitted = min(wanting, int(self.tokens))
        self.tokens = min(self.tokens - admitted, float(self.setting.burst))
        return admitted
