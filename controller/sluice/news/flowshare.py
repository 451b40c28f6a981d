"""The part of the responses that the switch measures, which follows the load so that the slots suffice. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .rates import HALVINGS_MOST, measured_share

_MOST = 1 / 3
"""Measured responses per slot above which fewer are to be measured. A quarter of the slots is taken at this load, and a
quarter of the new responses finds its slot taken."""
_WANTED = 1 / 4
"""Measured responses per slot after the share was lowered, at most."""
_FEW = 1 / 10
"""Measured responses per slot below which more can be measured."""
_LEAST_FREE = 0.01
"""Least part of free slots in the estimate of the load; with fewer free slots the estimate is a lower bound."""
_LONG = 8
"""The share is raised when there were few responses for this many times as long as a slot stays taken. Less could be a
pause."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The switch's slots for responses at one reading."""

    taken: float
    """The part of the slots that a response holds."""
    seconds: float
    """Seconds between the newest packets of this reading and of the one before."""
    held_s: float
    """Seconds for which a response holds its slot after its last packet."""


class FlowShare:
    """The share of the responses to be measured: 1/2^n, at most ``most``.

    A new response is hashed to a slot, and not measured when the slot is taken. At a load of ``a`` responses per slot
    the part a/(1 + a) of the slots is taken (Erlang's loss formula for one server). So the part of taken slots gives
    the load, whichever share was measured.
    """

    def __init__(self, most: float = 1.0) -> None:
        self._most = self.share = measured_share(most)
        self._since_s = 0.0
        """Seconds since the share last changed: responses measured before still hold slots for a while."""
        self._busiest = 0.0
        """Responses per slot if all were measured: the last value, or the maximum while there are few."""
        self._few_s = 0.0

    def observe(self, slots: Slots) -> None:
        """Take in a reading, and adapt ``share``."""
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
        """Choose the largest share at which ``unlimited`` responses per slot become at most _WANTED measured ones."""
        halvings = min(HALVINGS_MOST, max(0, math.ceil(math.log2(unlimited / _WANTED)))) if unlimited > 0 else 0
        share = min(self._most, 2.0**-halvings)
        if share != self.share:
            self._since_s = 0.0
        self.share, self._few_s = share, 0.0
