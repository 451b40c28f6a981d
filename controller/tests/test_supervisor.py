"""Tests of the controller under systemd: notifications of readiness, of the status, and for the watchdog."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from configs import web
from fakeswitch import FakeSwitch
from fakesystemd import PATIENCE_S, Systemd

WATCHDOG_S = 0.2


@asynccontextmanager
async def run(folder: Path, address: str) -> AsyncGenerator[tuple[asyncio.subprocess.Process, Systemd]]:
    """Start `sluice run` as systemd does; yield the process and systemd's substitute."""
    systemd = Systemd(str(folder / "notify.sock"))
    path = folder / "sluice.yaml"
    path.write_text(web(address, control=str(folder / "s.sock")))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sluice", "run", "--config", path),
        env=systemd.environment(WATCHDOG_S),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process, systemd
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        systemd.close()


async def test_it_is_ready_without_a_switch_and_reports_until_it_stops(tmp_path: Path) -> None:
    async with run(tmp_path, "127.0.0.1:1") as (process, systemd):
        await systemd.hears("READY=1")
        for _ in range(3):
            await systemd.hears("WATCHDOG=1")
        process.send_signal(signal.SIGSTOP)
        while not await systemd.silent_for(2 * WATCHDOG_S):  # messages that the process sent before the hang
            pass
        process.send_signal(signal.SIGCONT)
        await systemd.hears("WATCHDOG=1")


async def test_it_shows_its_lines(tmp_path: Path) -> None:
    async with FakeSwitch() as switch, run(tmp_path, switch.address) as (_, systemd):
        said = await systemd.hears("STATUS=sluice: ready")
        assert "READY=1" in said
        assert said[-1].endswith("services=1 servers=2 adopted=no updates=" + said[-1].rpartition("=")[2])


async def test_it_shows_that_the_switch_is_lost(tmp_path: Path) -> None:
    async with run(tmp_path, "127.0.0.1:1") as (_, systemd):
        said = await systemd.hears("STATUS=sluice: connecting; switch lost: ")
        assert "127.0.0.1:1" in said[-1]


async def test_systemd_that_listens_for_a_while_no_more_disturbs_nothing(tmp_path: Path) -> None:
    async with FakeSwitch() as switch, run(tmp_path, switch.address) as (process, systemd):
        await systemd.hears("STATUS=sluice: ready")
        systemd.close()
        await asyncio.sleep(3 * WATCHDOG_S)
        again = Systemd(str(tmp_path / "notify.sock"))
        await again.hears("WATCHDOG=1")
        again.close()
        process.terminate()
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0
