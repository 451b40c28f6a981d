"""The times at which connections were pinned, that is, entered in the switch's connection table. The table's slots do
not contain these times, so each time is only known to lie between two sweeps (complete readings) of the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.switch.connections import Slots


@dataclass(frozen=True, slots=True)
class Since:
    """The sweeps between which a connection was pinned, in Unix seconds. A field is None if there was no such sweep."""

    after_s: float | None = None
    before_s: float | None = None


class PinAges:
    """The times for the whole connection table, in 25 octets per slot. If a client opens two connections from the same
    port between two sweeps, they count as one connection."""

    def __init__(self) -> None:
        self._begin(0)

    def _begin(self, size: int) -> None:
        self._look_s: float | None = None
        """Unix time of the newest sweep; None before the first sweep."""
        self._whose, self._is_open = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        self._after_s, self._before_s = np.full(size, np.nan), np.full(size, np.nan)
        """For each slot, the times of the last sweep before its connection was pinned and of the first sweep after.
        NaN: there was no such sweep."""

    def __deepcopy__(self, memo: object) -> PinAges:
        """Return an object without times: a ``World`` is copied only to try a configuration on it."""
        return PinAges()

    def look(self, slots: Slots, unexpired: NDArray[np.bool_], now_s: float) -> None:
        """Record a sweep of the table. ``unexpired`` marks the slots that have not expired; ``now_s`` is in Unix
        seconds."""
        if self._whose.size != slots.size:
            self._begin(slots.size)
        whose, is_open = np.zeros(slots.size, np.int64), np.zeros(slots.size, np.bool_)
        whose[slots.places], is_open[slots.places] = slots.identities, slots.open & unexpired
        new = (whose != self._whose) | (is_open & ~self._is_open)
        self._after_s[new] = np.nan if self._look_s is None else self._look_s
        self._before_s[new] = now_s
        self._whose, self._is_open, self._look_s = whose, is_open, now_s

    def since(self, place: int, whose: int, size: int, *, is_open: bool) -> Since:
        """Return the times for the connection that now occupies the slot ``place``.

        ``whose``: the connection's identity, as in ``Slots``. ``size``: the table's number of slots. ``is_open``: the
        connection counts for its server's load.
        """
        if self._look_s is None or self._whose.size != size:
            return Since()
        if self._whose[place] != whose or (is_open and not self._is_open[place]):
            return Since(after_s=self._look_s)
        after_s = float(self._after_s[place])
        return Since(None if np.isnan(after_s) else after_s, float(self._before_s[place]))
