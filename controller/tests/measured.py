"""Measured transfers for tests: readings as the switch would return them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sluice.resources.columns import Numbers
from sluice.resources.need import Reading
from sluice.resources.throughput import Column

MSS = 1460.0


@dataclass(frozen=True)
class Seen:
    """Readings of measured transfers with a round trip of 50 ms; `flight` is the largest number of bytes in flight."""

    flow: Numbers
    server: Numbers
    fingerprint: Numbers
    sent: Numbers
    flight: Column
    segments: Column | float = 1000.0
    losses: Column | float = 0.0

    def since(self, before: Seen | None) -> Reading:
        many = len(self.flow)
        other = before is None or (self.flow != before.flow) | (self.fingerprint != before.fingerprint)
        return Reading(
            segments=np.broadcast_to(self.segments, many),
            losses=np.broadcast_to(self.losses, many),
            timeouts=np.zeros(many),
            rtt_s=np.full(many, 0.05),
            rto_s=np.full(many, 0.25),
            mss=np.full(many, MSS),
            flight=self.flight,
            under_way=self.flight,
            is_new=np.broadcast_to(other, many),
        )
