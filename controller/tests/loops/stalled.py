"""An event loop in virtual time that can stall, as by SIGSTOP: the clock goes on while the loop does not run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from sluice.loops.watchedtime import WatchedLoop
from virtual import Clock


class StalledLoop(WatchedLoop):
    """A loop whose sleeps take no real time; ``stall`` advances the clock in the middle of a step."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(self.clock, lambda: self.clock.now)


def stall(seconds: float) -> None:
    """Advance the clock as if the process had been stopped."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StalledLoop)
    loop.clock.now += seconds


def on_a_stalled_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end on a stalled loop."""
    with asyncio.Runner(loop_factory=StalledLoop) as runner:
        runner.run(coroutine)
