"""The clock of the controller's deadlines: it does not advance while the controller itself does not run.

A process receives nothing while it is stopped, has no processor time, or executes one long step. Reports and answers
wait in its sockets, and a deadline by the wall clock would pass before they are read. The late process would then
consider all agents absent at once. Therefore the clock of the controller's event loop omits such gaps. All waits by the
loop's time (`asyncio.timeout`, `asyncio.sleep`, `loop.time()`) continue after a gap as if no time had passed.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable

TICK_S = 0.25
"""Seconds between two readings of the clock in an idle loop."""
LATE_S = 0.5
"""The loop was late if more than this many seconds passed between two readings of the clock. The value is half the
shortest deadline (`features.resources.view.PROBE_S`)."""


class WatchedTime:
    """A monotonic clock that omits gaps between two readings. Pure."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` returns the time in seconds."""
        self._clock = clock
        self._read_s = self._now_s = clock()
        self.lost_s = 0.0
        """Seconds omitted since the start."""

    def now(self) -> float:
        """Return the time in seconds. A gap above LATE_S counts as one tick, so that the clock of a loop that is always
        late still advances."""
        read_s = self._clock()
        gap_s, self._read_s = read_s - self._read_s, read_s
        passed_s = TICK_S if gap_s > LATE_S else gap_s
        self.lost_s += gap_s - passed_s
        self._now_s += passed_s
        return self._now_s


class WatchedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock is a WatchedTime."""

    def __init__(
        self, selector: selectors.BaseSelector | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Create the loop. ``selector`` is that of SelectorEventLoop, and ``clock`` that of WatchedTime."""
        self.watched = WatchedTime(clock)
        super().__init__(selector)
        self._tick()

    def time(self) -> float:
        """Return the watched time, in seconds."""
        return self.watched.now()

    def _tick(self) -> None:
        self.call_later(TICK_S, self._tick)


def lost_s() -> float:
    """Return the seconds that the running loop's clock has omitted so far; 0 for a loop with another clock."""
    loop = asyncio.get_running_loop()
    return loop.watched.lost_s if isinstance(loop, WatchedLoop) else 0.0


class Readings:
    """Detects late readings among a task's readings of the switch's counters.

    A reading is late if the loop was late since the previous reading, or if the switch took much longer than usual to
    answer. A late reading may count SYNs without their SYN-ACKs. It is no evidence about servers, so measurements start
    again.
    """

    _UNUSUAL = 4.0
    """A reading is late when it takes more than this many times as long as the shortest so far, and more than
    LATE_S."""

    def __init__(self) -> None:
        self._lost_s, self._begun_s, self._shortest_s = lost_s(), 0.0, math.inf

    def begin(self) -> None:
        """Record that a reading begins."""
        self._begun_s = asyncio.get_running_loop().time()

    def is_late(self) -> bool:
        """Return whether the reading that ends now was late."""
        lost, took_s = lost_s(), asyncio.get_running_loop().time() - self._begun_s
        late = lost > self._lost_s or took_s > max(LATE_S, self._UNUSUAL * self._shortest_s)
        self._lost_s, self._shortest_s = lost, min(self._shortest_s, took_s)
        return late
