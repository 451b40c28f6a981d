"""Events for ``sluice events`` and the web page. The newest are stored, and each new one is sent to all followers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

KEPT = 256
"""The number of past events that are stored."""
_WAITING = 1024
"""The most events that wait for a follower which does not read. A follower misses further events, and receives the
number of missed ones."""

Event = dict[str, Any]
"""An event has ``time`` (Unix seconds), ``kind``, ``text`` for the operator, and fields that depend on the kind."""


class Kind(StrEnum):
    """The kinds of events."""

    DECISION = "decision"
    """The weights or the condition of a service changed."""
    EJECTED = "ejected"
    RETURNED = "returned"
    """An ejected server receives new connections again."""
    FULL = "full"
    """Servers have reached their caps of open connections."""
    ROOM = "room"
    """Servers have been below their caps for some time."""
    DRAIN = "drain"
    UNDRAIN = "undrain"
    MODE = "mode"
    RELOAD = "reload"
    CROWD = "crowd"
    """The verdict or the limits of flash-crowd control changed."""
    AGENT = "agent"
    """An agent is absent, or answers again."""
    LINK = "link"
    """The connection to the switch was lost, or the controller became the switch's primary."""


class Events:
    """The past events of a controller, and the followers of its new events."""

    def __init__(self) -> None:
        self.past: deque[Event] = deque(maxlen=KEPT)
        self._followers: set[_Follower] = set()

    def __deepcopy__(self, memo: object) -> Events:
        """Return an object without events and followers: a ``World`` is copied only to try a configuration on it."""
        return Events()

    def report(self, kind: Kind, text: str, **fields: Any) -> None:
        """Add an event that happens now, and send it to the followers."""
        event: Event = {"time": round(time.time(), 3), "kind": str(kind), "text": text, **fields}
        self.past.append(event)
        for follower in self._followers:
            follower.take(event)

    @contextmanager
    def follow(self) -> Generator[_Follower]:
        """Follow all events from now on, within a ``with`` statement."""
        follower = _Follower()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)


class _Follower:
    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(_WAITING)
        self._lost = 0

    def take(self, event: Event) -> None:
        try:
            self._queue.put_nowait(event)
        except asyncio.QueueFull:
            self._lost += 1

    async def next(self) -> Event:
        """Return the next event. If the follower has missed events since the previous call, ``lost_after_this``
        contains their number."""
        event = await self._queue.get()
        if self._lost:
            event, self._lost = event | {"lost_after_this": self._lost}, 0
        return event
