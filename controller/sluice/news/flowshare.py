"""The part of the responses that is measured: it follows the load, so that the switch's slots suffice for it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .rates import HALVINGS_MOST, measured_share

_MOST = 1 / 3
"""Responses for each slot at which fewer are to be measured: a quarter of the slots are taken then, and so many of the
new responses find theirs so."""
_WANTED = 1 / 4
"""No more than that are to be left."""
_FEW = 1 / 10
"""Where there are fewer, more can be measured."""
_LEAST_FREE = 0.01
"""With fewer slots free the load is only known to be large."""
_LONG = 8
"""So many times as long as a slot stays taken: fewer for as long are no pause."""


@dataclass(frozen=True, slots=True)
class Slots:
    """The switch's slots for responses at one reading."""

    taken: float
    """The part of them that a response holds."""
    seconds: float
    """Between the newest packets of this reading and of the one before."""
    held_s: float
    """How long a slot is its response's after the last packet."""


class FlowShare:
    """1/2^n of the responses, at most ``most`` of them.

    A new response draws its slot by lot and finds it taken as often as slots are: of ``a`` responses for each slot,
    a/(1 + a) are (Erlang's loss formula for one server). That gives the load whatever part of it was measured.
    """

    def __init__(self, most: float = 1.0) -> None:
        self._most = self.share = measured_share(most)
        self._since_s = 0.0
        """Since the last change; what was measured before it holds its slots for a while."""
        self._busiest = 0.0
        """Responses for each slot, if all were measured: the most while there are few."""
        self._few_s = 0.0

    def observe(self, slots: Slots) -> None:
        """Take in a reading; ``share`` may be another one then."""
        self._since_s += slots.seconds
        if self._since_s <= slots.held_s:
            return
        load = slots.taken / max(_LEAST_FREE, 1 - slots.taken)
        whole = load / self.share
        self._busiest = max(self._busiest, whole) if self._few_s else whole
        self._few_s = self._few_s + slots.seconds if load < _FEW else 0.0
        if load > _MOST or self._few_s > _LONG * slots.held_s:
            self._set(self._busiest)

    def _set(self, whole: float) -> None:
        """Choose the largest share that leaves few enough of so many responses for each slot."""
        halvings = min(HALVINGS_MOST, max(0, math.ceil(math.log2(whole / _WANTED)))) if whole > 0 else 0
        share = min(self._most, 2.0**-halvings)
        if share != self.share:
            self._since_s = 0.0
        self.share, self._few_s = share, 0.0
