"""The page's view of the controller: one reader of the control socket for all viewers, and none without viewers."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from sluice.log import logger
from sluice.loops import control
from sluice.loops.commands import Refused
from sluice.loops.events import Event

from .history import History
from .rates import Rates, Sample

_log = logger("page")

PERIOD_S = 2.0
"""Between two readings."""
EVENTS = 1_000
"""So many of the past are kept."""
_SHARE, _LONGEST_S = 60, 15.0
"""A reading, the answer included, is at most a sixtieth of the time; unless it took a quarter of a second."""
_ANSWER_S = 10.0
_PAUSE_S = 1.0
"""Before a controller that has gone is asked for events again."""
_LINE = 64 << 20
"""Bytes of an answer, at most: a status of 1,000 servers has half a million."""


class Hub:
    """What all viewers see. Runs in one event loop."""

    def __init__(self, path: str, period_s: float = PERIOD_S) -> None:
        self.sample: Sample | None = None
        """The newest; None until the first answer."""
        self.rates: Rates | None = None
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
        elif self.sample is not None:
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
        async with _asked(self._path, request) as reader:
            return control.result_of(self._path, await _line(self._path, reader))

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
            await asyncio.sleep(pause_s(self._period_s, took + time.process_time() - used) - took)

    async def _read(self) -> None:
        try:
            sample = Sample(time.time(), await self.ask({"command": "status"}))
        except Refused as error:
            self.error = str(error)
            self.history.gap(time.time())
            return
        self.error = "" if "services" in sample.status else f"the controller does not lead: {sample.status['role']}"
        self.rates = Rates(sample, recent(self.sample, sample.time_s))
        self.history.add(sample, self.rates)
        self.sample = sample

    async def _listen(self) -> None:
        while True:
            with suppress(Refused):
                async with _asked(self._path, {"command": "events", "follow": True}) as reader:
                    past = control.result_of(self._path, await _line(self._path, reader))
                    self.events.clear()
                    self.events.extend(past)
                    while line := await reader.readline():
                        self.events.append(json.loads(line))
            await asyncio.sleep(_PAUSE_S)


def recent(before: Sample | None, now_s: float) -> Sample | None:
    """The sample before, unless it is of another visit: rates over long times say nothing of now."""
    return before if before is not None and now_s - before.time_s <= 2 * _LONGEST_S else None


def pause_s(period_s: float, work_s: float) -> float:
    """From one reading to the next: longer where one is much work, or processors are short."""
    return max(period_s, min(_SHARE * work_s, _LONGEST_S))


@asynccontextmanager
async def _asked(path: str, request: Mapping[str, Any]) -> AsyncGenerator[asyncio.StreamReader]:
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=_LINE)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise Refused(f"no controller listens on {path}; start one with `sluice run`") from error
    except OSError as error:
        raise Refused(f"{path}: {error}") from error
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        yield reader
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from error
    finally:
        writer.close()


async def _line(path: str, reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(_ANSWER_S):
            return await reader.readline()
    except TimeoutError as error:
        raise Refused(f"{path}: the controller has not answered for {_ANSWER_S:g} s") from error
