"""An embedded switch as a child of an asyncio program."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .embedded import BINARY, EMBEDDED
from .kind import Endpoints

READY_S = 60.0


class StartedSwitch:
    """An embedded switch that serves P4Runtime."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self.process = process
        self.address = address
        """Address of P4Runtime."""

    async def stop(self) -> None:
        """Kill the switch by SIGKILL, like a crash."""
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


async def start(
    address: str = "127.0.0.1:0",
    ports: Mapping[int, str] | None = None,
    flags: Sequence[str] = (),
    folder: Path = Path(),
) -> StartedSwitch:
    """Start an embedded switch with the working directory ``folder``, and wait until it serves. ``ports``: interface by
    port number. Raises TimeoutError if it does not serve in time."""
    command = EMBEDDED.command(BINARY, ports or {}, Endpoints(address, folder), program=("--no-p4", *flags))
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdout is not None
    async with asyncio.timeout(READY_S):
        line = (await process.stdout.readline()).decode()
    assert "serving P4Runtime on " in line, line
    return StartedSwitch(process, line.split("serving P4Runtime on ")[1].split(",")[0])
