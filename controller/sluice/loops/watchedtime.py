"""The clock of the controller's deadlines: it stands still while the controller itself does not run.

A process that is stopped, has no processor time, or takes one long step of its own receives nothing meanwhile. Reports
and answers wait in its sockets, and a deadline by the wall clock would pass before they are read. The late process
would then count all agents as absent at once. So the controller's event loop has a clock that leaves such gaps out. All
waits by the loop's time (`asyncio.timeout`, `asyncio.sleep`, `loop.time()`) continue after a gap as if it had not been.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import time
from collections.abc import Callable

TICK_S = 0.25
"""Seconds between two readings of the clock by an idle loop, so that a longer distance is a gap."""
LATE_S = 0.5
"""Seconds between two readings above which the loop was late: half the shortest deadline
(`features.resources.view.PROBE_S`)."""


class WatchedTime:
    """A monotonic clock that leaves out gaps between two readings. Pure."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds."""
        self._clock = clock
        self._read_s = self._now_s = clock()
        self.lost_s = 0.0
        """Seconds left out since the start."""

    def now(self) -> float:
        """Return the time in seconds. A gap above LATE_S counts as one tick, so that a loop which is always late still
        advances."""
        read_s = self._clock()
        gap_s, self._read_s = read_s - self._read_s, read_s
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
    """Return the seconds that the running loop's clock has left out so far; 0 on a loop with another clock."""
    loop = asyncio.get_running_loop()
    return loop.watched.lost_s if isinstance(loop, WatchedLoop) else 0.0


class Readings:
    """Finds the late ones among a task's readings of the switch's counters.

    A reading is late when the loop was late since the one before, or when the switch took much longer than usual to
    answer. It may then count SYNs without their answers, and so is no evidence about servers: measurements begin anew.
    """

    _UNUSUAL = 4.0
    """A reading is late when it takes this many times as long as the shortest so far."""

    def __init__(self) -> None:
        self._lost_s, self._begun_s, self._shortest_s = lost_s(), 0.0, math.inf

    def begin(self) -> None:
        """Note the begin of a reading."""
        self._begun_s = asyncio.get_running_loop().time()

    def is_late(self) -> bool:
        """Whether the reading that ends now was late."""
        lost, took_s = lost_s(), asyncio.get_running_loop().time() - self._begun_s
        late = lost > self._lost_s or took_s > max(LATE_S, self._UNUSUAL * self._shortest_s)
        self._lost_s, self._shortest_s = lost, min(self._shortest_s, took_s)
        return late
