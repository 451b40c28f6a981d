"""Estimates the switch's current time from stamps that were read, and from the controller's own clock."""

from __future__ import annotations

from sluice.dataplane.units import Units

_WRAP = 1 << 32
_DRIFT = 1e-4
"""The largest relative drift between the clocks of two ordinary machines."""


class SwitchClock:
    """A lower bound of the switch's time, in the connection table's ticks modulo 2^32.

    A stamp is never later than the switch's time, but may be minutes earlier: the last stamp of an ending connection is
    older than those of live connections. So the bound is the stamp that has yielded the latest bound so far, plus the
    time since that stamp was read, less the most by which the controller's clock can have run fast.
    """

    def __init__(self, units: Units) -> None:
        self._units = units
        self._best: tuple[float, int] | None = None
        """The stamp that has yielded the latest bound, preceded by the time of its reading in seconds of the
        controller's clock."""

    def at(self, now_s: float, newest: int) -> int:
        """Return the bound at the controller's time ``now_s``; ``newest`` is the newest stamp in the table."""
        if self._best is not None:
            read_s, stamp = self._best
            bound = (stamp + int((now_s - read_s) * (1 - _DRIFT) * 1e6 / self._units.tick_us)) % _WRAP
            if (bound - newest) % _WRAP < _WRAP // 2:
                return bound
        self._best = now_s, newest % _WRAP
        return newest % _WRAP
