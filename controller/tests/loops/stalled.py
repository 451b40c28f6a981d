"""An event loop in virtual time that can be stopped, as by SIGSTOP: the clock goes on, the loop does not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from sluice.loops.watchedtime import WatchedLoop
from virtual import Clock


class StalledLoop(WatchedLoop):
    """Sleeping takes no time; ``stall`` lets time pass in the middle of a step."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(self.clock, lambda: self.clock.now)


def stall(seconds: float) -> None:
    """The process stands still."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StalledLoop)
    loop.clock.now += seconds


def on_a_stalled_loop(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run to the end."""
    with asyncio.Runner(loop_factory=StalledLoop) as runner:
        runner.run(coroutine)
