"""The switch's time as the controller knows it: from stamps that it read, carried on by its own clock."""

from __future__ import annotations

from sluice.dataplane.units import Units

_WRAP = 1 << 32
_DRIFT = 1e-4
"""Two clocks of ordinary machines drift apart by less."""


class SwitchClock:
    """A bound from below for the switch's time, in the connection table's ticks, modulo 2^32.

    A stamp is never later than the switch's time, and may be minutes earlier: one that a connection leaves when it ends
    is older than those of live ones. So the bound goes on from the best stamp that was ever seen.
    """

    def __init__(self, units: Units) -> None:
        self._units = units
        self._best: tuple[float, int] | None = None
        """When it was seen, and the stamp."""

    def at(self, now_s: float, newest: int) -> int:
        """Return the bound at a time of the controller's, when ``newest`` is the newest stamp in the table."""
        if self._best is not None:
            seen_s, stamp = self._best
            bound = (stamp + int((now_s - seen_s) * (1 - _DRIFT) * 1e6 / self._units.tick_us)) % _WRAP
            if (bound - newest) % _WRAP < _WRAP // 2:
                return bound
        self._best = now_s, newest % _WRAP
        return newest % _WRAP
