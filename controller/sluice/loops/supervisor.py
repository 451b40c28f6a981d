"""Reports readiness, a status line and keep-alives for the watchdog to systemd, if systemd started this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from systemd_watchdog.systemd_watchdog import WatchDog

_MOST_S = 1.0
"""The most seconds between two keep-alives. The interval is short because, after a pause of this process, systemd's
timeout may be nearly over."""


class Supervisor:
    """The connection to systemd. Without systemd, or if sending a message fails, nothing happens."""

    def __init__(self) -> None:
        self._systemd = WatchDog()

    def show(self, line: str) -> None:
        """Show a line in ``systemctl status``."""
        self._send(lambda: self._systemd.status(line))

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Report readiness to systemd and send keep-alives, within an ``async with`` statement. If the event loop
        hangs, systemd restarts the process."""
        self._send(self._systemd.ready)
        turning = asyncio.create_task(self._turn(), name="watchdog")
        try:
            yield
        finally:
            turning.cancel()

    async def _turn(self) -> None:
        """Send keep-alives from the event loop, at least two within systemd's timeout."""
        while True:
            self._send(self._systemd.notify)
            await asyncio.sleep(min(_MOST_S, self._systemd.timeout_td.total_seconds() / 2))

    def _send(self, message: Callable[[], None]) -> None:
        with suppress(OSError):
            message()
