"""The time by which the controller judges others: it passes only while the controller itself runs.

A process that is stopped, starved of its processor, or busy with one long step of its own receives nothing meanwhile.
Reports and answers wait in its sockets, and a deadline by the wall clock would pass before they are read: the late
process would blame every agent at once. So the controller's event loop has a clock that leaves such gaps out. Whatever
takes its time from the loop (`asyncio.timeout`, `asyncio.sleep`, `loop.time()`) begins anew behind a gap.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable

TICK_S = 0.25
"""Seconds between two looks at the clock of an idle loop: how a gap is told from a wait."""
LATE_S = 0.5
"""Seconds between two looks above which the loop was late: half the shortest deadline (`resourcesview.PROBE_S`)."""


class WatchedTime:
    """A monotonic clock that leaves gaps out. Pure: it is looked at, and measures nothing in between."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds."""
        self._clock = clock
        self._looked_s = self._now_s = clock()
        self.lost_s = 0.0
        """Seconds that were left out since the beginning."""

    def now(self) -> float:
        """Seconds. Of a gap above LATE_S a tick counts, so that a loop which is always late still gets on."""
        looked_s = self._clock()
        gap_s, self._looked_s = looked_s - self._looked_s, looked_s
        passed_s = TICK_S if gap_s > LATE_S else gap_s
        self.lost_s += gap_s - passed_s
        self._now_s += passed_s
        return self._now_s


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop on watched time."""

    def __init__(
        self, selector: selectors.BaseSelector | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """As a SelectorEventLoop; ``clock`` as for WatchedTime."""
        self.watched = WatchedTime(clock)
        super().__init__(selector)
        self._tick()

    def time(self) -> float:
        """Watched time, in seconds."""
        return self.watched.now()

    def _tick(self) -> None:
        self.call_later(TICK_S, self._tick)


def lost_s() -> float:
    """Seconds that the running loop's clock has left out so far; 0 on a loop with another clock."""
    loop = asyncio.get_running_loop()
    return loop.watched.lost_s if isinstance(loop, WatchedLoop) else 0.0


class Readings:
    """Whether a task's readings of the switch's counters are evidence of servers.

    A reading is none when the loop was late since the one before, or when the switch took much longer than usual to
    answer: SYNs may be counted in it whose answers are not. What follows such a reading begins anew.
    """

    _UNUSUAL = 4.0
    """Times the shortest reading so far."""

    def __init__(self) -> None:
        self._lost_s, self._begun_s, self._shortest_s = lost_s(), 0.0, math.inf

    def begin(self) -> None:
        """A reading begins."""
        self._begun_s = asyncio.get_running_loop().time()

    def is_late(self) -> bool:
        """Whether the reading that ends now is late."""
        lost, took_s = lost_s(), asyncio.get_running_loop().time() - self._begun_s
        late = lost > self._lost_s or took_s > max(LATE_S, self._UNUSUAL * self._shortest_s)
        self._lost_s, self._shortest_s = lost, min(self._shortest_s, took_s)
        return late
