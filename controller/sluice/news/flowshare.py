"""The part of the responses that the switch measures. It follows the load, so that the switch's slots suffice. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .rates import HALVINGS_MOST, measured_share

_MOST = 1 / 3
"""Number of measured responses per slot above which fewer responses are to be measured. At this load a quarter of the
slots is occupied, and a quarter of the new responses hash to an occupied slot."""
_WANTED = 1 / 4
"""Largest number of measured responses per slot after the share was lowered."""
_FEW = 1 / 10
"""Number of measured responses per slot below which more responses can be measured."""
_LEAST_FREE = 0.01
"""The estimate of the load assumes that at least this part of the slots is free. With fewer free slots the estimate is
a lower bound."""
_LONG = 8
"""The share is raised after responses were few for this many times as long as a slot stays occupied. A shorter time
could be a pause."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The occupancy of the switch's slots for responses at one reading."""

    taken: float
    """The part of the slots that is occupied by a response."""
    seconds: float
    """Seconds between the newest packet of the previous reading and the newest packet of this reading."""
    held_s: float
    """Seconds for which a response occupies its slot after its last packet."""


class FlowShare:
    """The share of the responses that the switch is to measure: 1/2^n, at most ``most``.

    A new response hashes to a slot, and is not measured if the slot is occupied. At a load of ``a`` responses per slot
    the part a/(1 + a) of the slots is occupied (Erlang's loss formula for one server). So the part of occupied slots
    determines the load, independently of the share.
    """

    def __init__(self, most: float = 1.0) -> None:
        self._most = self.share = measured_share(most)
        self._since_s = 0.0
        """Seconds since the share last changed. Responses measured before the change still occupy slots for a while."""
        self._busiest = 0.0
        """Estimated responses per slot if all were measured: the last estimate, or the maximum during a time with few
        responses."""
        self._few_s = 0.0

    def observe(self, slots: Slots) -> None:
        """Update the estimate of the load by a reading, and adapt ``share`` to the estimate."""
        self._since_s += slots.seconds
        if self._since_s <= slots.held_s:
            return
        load = slots.taken / max(_LEAST_FREE, 1 - slots.taken)
        unlimited = load / self.share
        self._busiest = max(self._busiest, unlimited) if self._few_s else unlimited
        self._few_s = self._few_s + slots.seconds if load < _FEW else 0.0
        if load > _MOST or self._few_s > _LONG * slots.held_s:
            self._set(self._busiest)

    def _set(self, unlimited: float) -> None:
        """Choose the largest share at which ``unlimited`` responses per slot become at most _WANTED measured
        responses."""
        halvings = min(HALVINGS_MOST, max(0, math.ceil(math.log2(unlimited / _WANTED)))) if unlimited > 0 else 0
        share = min(self._most, 2.0**-halvings)
        if share != self.share:
            self._since_s = 0.0
        self.share, self._few_s = share, 0.0
