"""What systemd is to a service: a socket that is told things, and a program that hangs."""

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
    """Its socket: by a path, or by an abstract name, which begins with ``@``."""

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
        """What it gives a service."""
        return {**os.environ, "NOTIFY_SOCKET": self.name, "WATCHDOG_USEC": f"{watchdog_s * 1e6:.0f}"}

    async def hears(self, wanted: str) -> list[str]:
        """What it is told, up to this."""
        said: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            while not said or not said[-1].startswith(wanted):
                said.append((await asyncio.get_running_loop().sock_recv(self._socket, 4096)).decode().strip())
        return said

    async def silent_for(self, seconds: float) -> bool:
        """Whether it is told nothing meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self.hears("never said")
        except TimeoutError:
            return True
        return False

    def close(self) -> None:
        """Hear nothing any more."""
        self._socket.close()


@contextmanager
def hanging(process: int, name: str) -> Generator[None]:
    """One of a process's threads, by its name, stands still; all others go on. Takes a child of ours, or root."""
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
