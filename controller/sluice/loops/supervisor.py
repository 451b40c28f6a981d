"""Reports to systemd, where it started this process: readiness, a status line, and the watchdog's keep-alive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from systemd_watchdog.systemd_watchdog import WatchDog

_MOST_S = 1.0
"""The most seconds between two keep-alives: after a pause of this process, systemd's time may be nearly over."""


class Supervisor:
    """The connection to systemd. Without systemd, or when it does not take a message, nothing happens."""

    def __init__(self) -> None:
        self._systemd = WatchDog()

    def show(self, line: str) -> None:
        """Show a line in ``systemctl status``."""
        self._send(lambda: self._systemd.status(line))

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Report to systemd, within a ``with`` statement, that the process serves, so that it is restarted if the loop
        hangs."""
        self._send(self._systemd.ready)
        turning = asyncio.create_task(self._turn(), name="watchdog")
        try:
            yield
        finally:
            turning.cancel()

    async def _turn(self) -> None:
        """Send keep-alives from the event loop, at least two within systemd's time."""
        while True:
            self._send(self._systemd.notify)
            await asyncio.sleep(min(_MOST_S, self._systemd.timeout_td.total_seconds() / 2))

    def _send(self, message: Callable[[], None]) -> None:
        with suppress(OSError):
            message()
