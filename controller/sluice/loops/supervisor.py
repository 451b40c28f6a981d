"""What systemd is told, where it started this process: ready, what goes on, and that the loop still turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from systemd_watchdog.systemd_watchdog import WatchDog

_MOST_S = 1.0
"""Seconds between two reports at most: behind a pause of this process, systemd's time is nearly over."""


class Supervisor:
    """Without systemd nothing happens; whatever systemd does not take disturbs nobody."""

    def __init__(self) -> None:
        self._systemd = WatchDog()

    def tell(self, line: str) -> None:
        """Show a line in ``systemctl status``."""
        self._send(lambda: self._systemd.status(line))

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Within this systemd knows that the process serves; it starts it again if the loop hangs."""
        self._send(self._systemd.ready)
        turning = asyncio.create_task(self._turn(), name="watchdog")
        try:
            yield
        finally:
            turning.cancel()

    async def _turn(self) -> None:
        """Report at least twice within systemd's time, from the loop that does all the work."""
        while True:
            self._send(self._systemd.notify)
            await asyncio.sleep(min(_MOST_S, self._systemd.timeout_td.total_seconds() / 2))

    def _send(self, message: Callable[[], None]) -> None:
        with suppress(OSError):
            message()
