"""A fake control socket: it sends the answers that a test has set, and counts the requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any


class FakeControl:
    """A substitute for a controller, with a status and past events; it serves the control socket."""

    def __init__(self, status: dict[str, Any], events: list[dict[str, Any]] | None = None) -> None:
        self.status, self.events = status, events or []
        self.asked: list[str] = []
        self.followers: list[asyncio.StreamWriter] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one client; callback of the server."""
        with suppress(ConnectionError):
            while line := await reader.readline():
                request = json.loads(line)
                self.asked.append(request["command"])
                if request["command"] == "events":
                    self.followers.append(writer)
                result = {"status": self.status, "events": self.events}.get(request["command"], "done")
                writer.write(json.dumps({"ok": True, "result": result}).encode() + b"\n")
        writer.close()

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event to the clients that subscribed to events."""
        for follower in self.followers:
            follower.write(json.dumps(event).encode() + b"\n")


@asynccontextmanager
async def controlled(path: Path, fake: FakeControl) -> AsyncGenerator[FakeControl]:
    """Serve a fake controller while the block runs; then close all connections."""
    server = await asyncio.start_unix_server(fake.handle, path)
    try:
        yield fake
    finally:
        server.close()
        for follower in fake.followers:
            follower.close()
        path.unlink()
