"""An event loop in virtual time that can stall: the clock advances while the loop does not run, as after SIGSTOP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from sluice.loops.watchedtime import WatchedLoop
from virtual import Clock

P = ParamSpec("P")


class StalledLoop(WatchedLoop):
    """An event loop whose sleeps take no real time; `stall` advances the clock within a step of the loop."""

    def __init__(self) -> None:
        self.clock = Clock()
        super().__init__(self.clock, lambda: self.clock.now)


def stall(seconds: float) -> None:
    """Advance the clock by `seconds` as if the process had been stopped for that time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, StalledLoop)
    loop.clock.now += seconds


def stalled(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Decorate a coroutine test: it runs to its end on a StalledLoop."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with asyncio.Runner(loop_factory=StalledLoop) as runner:
            runner.run(test(*args, **kwargs))

    return run
