"""What happens, as it happens: what ``sluice events`` shows. The last ones are kept, and sent to whoever follows."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

KEPT = 256
"""So many of the past are kept."""
_WAITING = 1024
"""So many wait for a follower that does not read; it loses what is more, and is told how many."""

Event = dict[str, Any]
"""``time`` (Unix seconds), ``kind``, ``text`` for a person, and fields of the kind's."""


class Kind(StrEnum):
    """What happened."""

    DECISION = "decision"
    """A service's weights, or what is thought of its servers, changed."""
    EJECTED = "ejected"
    RETURNED = "returned"
    """An ejected server takes connections again."""
    FULL = "full"
    """Servers have as many connections as they may."""
    ROOM = "room"
    """They have had room again for a while."""
    DRAIN = "drain"
    UNDRAIN = "undrain"
    MODE = "mode"
    RELOAD = "reload"
    CROWD = "crowd"
    """Flash-crowd control thinks or does otherwise than before."""
    AGENT = "agent"
    """One is gone, or back."""
    LINK = "link"
    """The switch was lost, or is led."""


class Events:
    """One for a controller."""

    def __init__(self) -> None:
        self.past: deque[Event] = deque(maxlen=KEPT)
        self._followers: set[_Follower] = set()

    def __deepcopy__(self, memo: object) -> Events:
        """Nobody follows what only is tried on a copy of the world."""
        return Events()

    def report(self, kind: Kind, text: str, **fields: Any) -> None:
        """It happened now."""
        event: Event = {"time": round(time.time(), 3), "kind": str(kind), "text": text, **fields}
        self.past.append(event)
        for follower in self._followers:
            follower.take(event)

    @contextmanager
    def follow(self) -> Generator[_Follower]:
        """Hear of what happens from now on."""
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
        """The next event; after a gap it says how many are missing."""
        event = await self._queue.get()
        if self._lost:
            event, self._lost = event | {"lost_after_this": self._lost}, 0
        return event
