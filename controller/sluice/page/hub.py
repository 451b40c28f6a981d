"""Reads the controller's status once for all viewers of the page, and only while there are viewers. The recorder that
`serve` adds with `history` counts as a viewer."""

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
from .reading import Reading

_log = logger("page")

PERIOD_S = 2.0
"""Seconds between two readings."""
EVENTS = 1_000
"""The largest number of past events that are stored."""
_SHARE, _LONGEST_S = 60, 15.0
"""From the start of a reading to the next pass at least `_SHARE` times the seconds of work for it (the controller's
answer and the sending of changes), except that work never requires more than `_LONGEST_S` seconds."""
_SENDING_S = 0.5
"""Seconds after a reading within which changes are serialised and sent; this work counts as part of the reading."""
_ANSWER_S = 10.0
"""Seconds within which the controller must answer."""
_PAUSE_S = 1.0
"""Seconds between the end of the controller's stream of events (or a failed request for it) and the next request."""


class Hub:
    """The state that all viewers share. All methods run in one event loop."""

    def __init__(self, path: str, period_s: float = PERIOD_S) -> None:
        self.reading: Reading | None = None
        """The newest reading; None before the first answer."""
        self.history = History()
        self.events: deque[Event] = deque(maxlen=EVENTS)
        self.error = ""
        """Why the latest reading failed, or that the controller does not lead; empty otherwise."""
        self._path, self._period_s = path, period_s
        self._viewers: dict[str, Callable[[], None]] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def join(self, key: str, refresh: Callable[[], None]) -> None:
        """Add a viewer. ``refresh`` is called after every reading.

        It is also called at once if there is a reading already; the first viewer, however, waits for a new one.
        """
        self._viewers[key] = refresh
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._watch()), asyncio.create_task(self._listen())]
        elif self.reading is not None:
            refresh()

    def leave(self, key: str) -> None:
        """Remove a viewer. Without viewers, nothing is read."""
        self._viewers.pop(key, None)
        if not self._viewers:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    async def ask(self, request: Mapping[str, Any]) -> Any:
        """Let the controller execute a command. Raises Refused."""
        return await asked(self._path, request, _ANSWER_S)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began, used = loop.time(), time.process_time()
            try:
                await self._read()
            except Exception as error:
                # Either the page has an error, or the controller has another version. Viewers see the message, and the
                # next reading may succeed.
                _log.exception("reading failed")
                self.error = f"internal error: {error!r}; see the page's log"
            duration_s = loop.time() - began
            for refresh in list(self._viewers.values()):
                try:
                    refresh()
                except Exception:
                    _log.exception("a viewer cannot be shown the reading")
            await asyncio.sleep(min(self._period_s, _SENDING_S))
            pause = pause_s(self._period_s, duration_s + time.process_time() - used)
            await asyncio.sleep(pause - (loop.time() - began))

    async def _read(self) -> None:
        try:
            sample = Sample(time.time(), await self.ask({"command": "status"}))
        except Refused as error:
            self.error = str(error)
            self.history.gap(time.time())
            return
        self.error = "" if "services" in sample.status else f"the controller does not lead: {sample.status['role']}"
        before = self.reading.sample if self.reading is not None else None
        rates = Rates(sample, recent(before, sample.time_s))
        self.history.add(sample, rates)
        self.reading = Reading(sample, rates, self.history)

    async def _listen(self) -> None:
        while True:
            with suppress(Refused):
                batches = followed(self._path, _ANSWER_S)
                self.events = deque(await anext(batches), EVENTS)
                async for events in batches:
                    self.events.extend(events)
            await asyncio.sleep(_PAUSE_S)


def recent(before: Sample | None, now_s: float) -> Sample | None:
    """Return the previous sample; None if it is older than twice `_LONGEST_S`, the longest pause that work requires.

    Rates since an older sample would not describe the present.
    """
    return before if before is not None and now_s - before.time_s <= 2 * _LONGEST_S else None


def pause_s(period_s: float, work_s: float) -> float:
    """Return the seconds from the start of a reading to the start of the next: ``period_s``, or more if the work for
    the reading took long (``work_s`` seconds), as on busy processors."""
    return max(period_s, min(_SHARE * work_s, _LONGEST_S))
