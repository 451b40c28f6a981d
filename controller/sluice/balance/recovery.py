"""Recovery, which Ohta & Andou lack: ratios return to the capacities while no server loses SYNs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .ratios import Ratios, bounded

MEMORY = 20
"""Number of windows for which a server's first ceiling limits recovery."""


@dataclass(frozen=True, slots=True)
class _Ceiling:
    share: float
    length: int
    """Number of periods for which the ceiling limits recovery."""
    remaining: int
    """Number of periods for which the ceiling still limits recovery. From 0 down to -length, recovery may exceed the
    share, and ``carried`` reports the share."""


class Ceilings:
    """For each server that lost SYNs, its ceiling: the share to which it was then lowered, and which recovery must not
    exceed for a time. Each attempt to exceed a ceiling costs losses, so attempts become rarer.

    A server's first ceiling limits recovery for MEMORY windows. If the server loses SYNs again within an equally long
    time after the end of a ceiling, its next ceiling lasts twice as long. If it loses SYNs while a ceiling still limits
    recovery, the next one lasts as long as that one, from now on.
    """

    def __init__(self) -> None:
        self._of: dict[int, _Ceiling] = {}

    def lost(self, server: int, share: float, intervals: int) -> None:
        """Set the ceiling of a server that lost SYNs to its new ratio ``share``; a window has ``intervals`` periods."""
        before = self._of.get(server)
        length = MEMORY * intervals if before is None else before.length * (1 if before.remaining > 0 else 2)
        self._of[server] = _Ceiling(share, length, length)

    @property
    def carried(self) -> Ratios:
        """The shares that servers carried without a loss, for servers whose ceiling no longer limits recovery."""
        return {server: ceiling.share for server, ceiling in self._of.items() if ceiling.remaining <= 0}

    def pass_period(self) -> None:
        """Count down one period of each ceiling, and drop ceilings that ended as long ago as they had lasted."""
        self._of = {
            server: _Ceiling(ceiling.share, ceiling.length, ceiling.remaining - 1)
            for server, ceiling in self._of.items()
            if ceiling.remaining - 1 > -ceiling.length
        }

    def keep(self, servers: Collection[int]) -> None:
        """Drop the ceilings of all servers except these."""
        self._of = {server: ceiling for server, ceiling in self._of.items() if server in servers}

    def forget(self, servers: Collection[int]) -> None:
        """Drop the ceilings of these servers."""
        for server in servers:
            self._of.pop(server, None)

    def below(self, fair: Mapping[int, float]) -> Ratios:
        """Return the fair shares bounded by the ceilings. What the ceilings cut off is divided among the servers below
        their ceilings."""
        highest = {i: self._of[i].share if i in self._of and self._of[i].remaining > 0 else 1.0 for i in fair}
        return bounded(fair, dict.fromkeys(fair, 0.0), highest)


def relax(ratios: Mapping[int, float], aim: Mapping[int, float], share: float) -> Ratios:
    """Return the ratios moved by ``share`` (0 to 1) of the distance from ``ratios`` to ``aim``."""
    return {server: ratio + share * (aim[server] - ratio) for server, ratio in ratios.items()}


def ramp(age_s: float, slow_start_s: float, floor: float) -> float:
    """Return the part of its fair share, ``floor`` to 1, that a server gets in its slow start. ``age_s`` is the time
    since it joined or answered again, in seconds."""
    if slow_start_s <= 0 or age_s >= slow_start_s:
        return 1.0
    return max(floor, age_s / slow_start_s)
