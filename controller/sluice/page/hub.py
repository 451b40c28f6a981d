"""The page's view of the controller: one reader of the control socket for all viewers, and none without viewers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from sluice.log import logger
from sluice.loops.commands import Refused
from sluice.loops.controlclient import asked, followed
from sluice.loops.events import Event

from .history import History
from .rates import Rates, Sample
from .shown import Shown

_log = logger("page")

PERIOD_S = 2.0
"""Between two readings."""
EVENTS = 1_000
"""So many of the past are kept."""
_SHARE, _LONGEST_S = 60, 15.0
"""A reading, the answer and what is sent of it included, is at most a sixtieth of the time; unless it took a quarter
of a second."""
_SENDING_S = 0.5
"""Within this after a reading, what changed is made JSON and sent."""
_ANSWER_S = 10.0
_PAUSE_S = 1.0
"""Before a controller that has gone is asked for events again."""


class Hub:
    """What all viewers see. Runs in one event loop."""

    def __init__(self, path: str, period_s: float = PERIOD_S) -> None:
        self.shown: Shown | None = None
        """The newest reading; None until the first answer."""
        self.history = History()
        self.events: deque[Event] = deque(maxlen=EVENTS)
        self.error = ""
        """Why there is nothing newer; empty when there is."""
        self._path, self._period_s = path, period_s
        self._viewers: dict[str, Callable[[], None]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def join(self, key: str, tell: Callable[[], None]) -> None:
        """A viewer comes; ``tell`` is called after every reading."""
        self._viewers[key] = tell
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._listen())]
        elif self.shown is not None:
            tell()

    def leave(self, key: str) -> None:
        """A viewer goes. Behind the last one nothing is read any more."""
        self._viewers.pop(key, None)
        if not self._viewers:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    async def ask(self, request: Mapping[str, Any]) -> Any:
        """Have the controller do a command. Raises Refused."""
        return await asked(self._path, request, _ANSWER_S)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began, used = loop.time(), time.process_time()
            try:
                await self._read()
            except Exception as error:
                # A mistake of ours, or a controller of another version: viewers are told, and the next reading may do.
                _log.exception("reading failed")
                self.error = f"internal error: {error!r}; see the page's log"
            took = loop.time() - began
            for tell in list(self._viewers.values()):
                try:
                    tell()
                except Exception:
                    _log.exception("a viewer cannot be shown the reading")
            await asyncio.sleep(min(self._period_s, _SENDING_S))
            pause = pause_s(self._period_s, took + time.process_time() - used)
            await asyncio.sleep(pause - (loop.time() - began))

    async def _read(self) -> None:
        try:
            sample = Sample(time.time(), await self.ask({"command": "status"}))
        except Refused as error:
            self.error = str(error)
            self.history.gap(time.time())
            return
        self.error = "" if "services" in sample.status else f"the controller does not lead: {sample.status['role']}"
        before = self.shown.sample if self.shown is not None else None
        rates = Rates(sample, recent(before, sample.time_s))
        self.history.add(sample, rates)
        self.shown = Shown(sample, rates, self.history)

    async def _listen(self) -> None:
        while True:
            with suppress(Refused):
                told = followed(self._path, _ANSWER_S)
                self.events = deque(await anext(told), EVENTS)
                async for some in told:
                    self.events.extend(some)
            await asyncio.sleep(_PAUSE_S)


def recent(before: Sample | None, now_s: float) -> Sample | None:
    """The sample before, unless it is of another visit: rates over long times say nothing of now."""
    return before if before is not None and now_s - before.time_s <= 2 * _LONGEST_S else None


def pause_s(period_s: float, work_s: float) -> float:
    """From one reading to the next: longer where one is much work, or processors are short."""
    return max(period_s, min(_SHARE * work_s, _LONGEST_S))
