"""A substitute for systemd: a notification socket for a service, and a function that stops a thread of a process."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_WALL = 0x4000_0000


class Systemd:
    """The notification socket of systemd; `name` is a path, or an abstract name that begins with ``@``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        if name.startswith("@"):
            self._socket.bind("\0" + name[1:])
        else:
            Path(name).unlink(missing_ok=True)
            self._socket.bind(name)
        self._socket.setblocking(False)

    def environment(self, watchdog_s: float) -> dict[str, str]:
        """Return the environment variables that systemd sets for a service."""
        return {**os.environ, "NOTIFY_SOCKET": self.name, "WATCHDOG_USEC": f"{watchdog_s * 1e6:.0f}"}

    async def hears(self, wanted: str) -> list[str]:
        """Return the received messages up to the first that begins with `wanted`."""
        said: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while not said or not said[-1].startswith(wanted):
                said.append((await asyncio.get_running_loop().sock_recv(self._socket, 4096)).decode().strip())
        return said

    async def silent_for(self, seconds: float) -> bool:
        """Return whether no message arrives within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self.hears("never said")
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        """Close the notification socket."""
        self._socket.close()


@contextmanager
def hanging(process: int, name: str) -> Generator[None]:
    """Stop the thread `name` of a process while the block runs; the process's other threads continue.

    Needs root if the process is not a child of this one.
    """
    tasks = Path(f"/proc/{process}/task").iterdir()
    (thread,) = (int(task.name) for task in tasks if (task / "comm").read_text().strip() == name)
    libc = ctypes.CDLL(None, use_errno=True)
    for request in (_SEIZE, _INTERRUPT):
        if libc.ptrace(request, thread, None, None):
            raise OSError(ctypes.get_errno(), f"thread {name} cannot be stopped")
    os.waitpid(thread, _WALL)
    try:
        yield
    finally:
        libc.ptrace(_DETACH, thread, None, None)
