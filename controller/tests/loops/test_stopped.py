"""A test of a controller whose process stops for seconds, as on a busy host: its agents stay in the switch's tables."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

from content import content
from fakeagent import FakeAgent
from fakeswitch import FakeSwitch
from live import until

STOPPED_S = 4.0
SHOP, BOTH = 1, {1: 64, 2: 192}


async def test_agents_stay_when_the_controller_is_stopped(switch: FakeSwitch, tmp_path: Path) -> None:
    path = tmp_path / "sluice.yaml"
    async with FakeAgent(tmp_path / "a1.sock") as first, FakeAgent(tmp_path / "a2.sock") as second:
        path.write_text(
            content(switch.address, control=str(tmp_path / "s.sock"), agents=(first.control, second.control))
        )
        log = tmp_path / "log"
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "sluice", "run", "--config", path),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
            )
        try:
            await until(lambda: first.has and second.has, "both agents to be configured")
            await until(lambda: switch.weights(SHOP, "choose_stable") == BOTH, "both agents in the switch")
            for _ in range(2):
                reports, writes = (first.reports, second.reports), len(switch.writes)
                process.send_signal(signal.SIGSTOP)
                await asyncio.sleep(STOPPED_S)
                process.send_signal(signal.SIGCONT)
                await until(
                    lambda before=reports: first.reports > before[0] + 80 and second.reports > before[1] + 80,
                    "reports of both, again and again",
                )
                written = [
                    switch.schema.tables[update.entity.table_entry.table_id].alias
                    for request in switch.writes[writes:]
                    for update in request.updates
                    if update.entity.WhichOneof("entity") == "table_entry"
                ]
                assert {"servers", "choose_stable"}.isdisjoint(written)
            assert "agent is gone" not in log.read_text()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
