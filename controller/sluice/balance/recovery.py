"""The way back: what the published algorithm leaves out once all R are 0."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .ratios import Ratios, bounded

MEMORY = 20
"""Windows for which recovery stays below a share at which a server lost SYNs, the first time."""


@dataclass(frozen=True, slots=True)
class _Ceiling:
    share: float
    length: int
    """Periods that it holds for."""
    left: int
    """Of these; below 0 it holds no more, and is remembered for as long again."""


class Ceilings:
    """The shares at which servers last lost SYNs. Recovery up to one costs losses, so it is tried less and less often.

    A ceiling holds for MEMORY windows; where the server then loses SYNs again, for twice as long.
    """

    def __init__(self) -> None:
        self._of: dict[int, _Ceiling] = {}

    def lost(self, server: int, share: float, intervals: int) -> None:
        """A server lost SYNs and is left with ``share``; a window has so many periods."""
        before = self._of.get(server)
        length = MEMORY * intervals if before is None else before.length * (1 if before.left > 0 else 2)
        self._of[server] = _Ceiling(share, length, length)

    @property
    def tried(self) -> Ratios:
        """The shares below which servers were kept until recovery went beyond them: what they surely carry."""
        return {server: one.share for server, one in self._of.items() if one.left <= 0}

    def pass_period(self) -> None:
        """One period is over."""
        self._of = {
            server: _Ceiling(one.share, one.length, one.left - 1)
            for server, one in self._of.items()
            if one.left - 1 > -one.length
        }

    def forget(self, servers: Collection[int]) -> None:
        """These servers begin anew."""
        for server in servers:
            self._of.pop(server, None)

    def below(self, fair: Mapping[int, float]) -> Ratios:
        """The fair shares, as far as the ceilings let them; what one keeps from its server the others share."""
        highest = {i: self._of[i].share if i in self._of and self._of[i].left > 0 else 1.0 for i in fair}
        return bounded(fair, dict.fromkeys(fair, 0.0), highest)


def relax(ratios: Mapping[int, float], aim: Mapping[int, float], part: float) -> Ratios:
    """Go ``part`` of the way from the present ratios to those aimed at."""
    return {server: ratio + part * (aim[server] - ratio) for server, ratio in ratios.items()}


def ramp(age_s: float, slow_start_s: float, floor: float) -> float:
    """The part of its share that a server has ``age_s`` after it came (back): from ``floor`` up to 1."""
    if slow_start_s <= 0 or age_s >= slow_start_s:
        return 1.0
    return max(floor, age_s / slow_start_s)
