"""Tests of a controller's life with a Tofino switch: start, weights, limits, drains, restarts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import tofinoprogram
from configs import web
from live import overload, running, settled, until
from sluice.config.load import load
from sluice.controller import Controller
from sluice.features.balance.trace import Trace
from sluice.names import Meter
from sluice.switch.errors import SwitchError
from sluice.views.status import gather
from tofinoswitch import TofinoSwitch


@pytest.fixture
async def tofino() -> AsyncGenerator[TofinoSwitch]:
    async with TofinoSwitch() as fake:
        yield fake


@pytest.fixture
def config(tofino: TofinoSwitch, tmp_path: Path) -> Path:
    program = tofinoprogram.write(tmp_path / "tofino")
    path = tmp_path / "sluice.yaml"
    text = web(tofino.address, str(program), control=str(tmp_path / "s.sock"))
    path.write_text(text.replace("  servers:", "  admission: {rate_per_s: 250, burst: 50}\n  servers:"))
    return path


async def test_start_weights_limits_and_a_restart_of_the_controller(tofino: TofinoSwitch, config: Path) -> None:
    async with running(config) as it:
        assert it.lines[0].startswith(f"sluice: ready switch={tofino.address} device=1 services=1 servers=2 adopted=no")
        assert tofino.weights(1) == {1: 128, 2: 128}
        admission = tofino.schema.meters[Meter.ADMISSION].id
        assert tofino.meters[admission, 1].cir == 255
        await overload(tofino)
        await settled(it)
        assert it.controller.link is not None
        shown = await gather(it.controller, pins=False)
        assert shown["services"][0]["name"] == "web"
    left, writes = tofino.weights(1), len(tofino.writes)
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=0")
        await until(lambda: len(again.decisions()) >= 2, "two decisions")
        assert tofino.weights(1) == left
    assert tofino.pushes == 1
    assert len(tofino.writes) == writes


async def test_a_drain_outlives_the_controller(tofino: TofinoSwitch, config: Path) -> None:
    async with running(config) as it:
        await it.controller.drain("s1", drain=True)
        assert tofino.weights(1) == {2: 256}
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=0")
        assert tofino.weights(1) == {2: 256}
        await again.controller.drain("s1", drain=False)
        assert set(tofino.weights(1)) == {1, 2}


async def test_a_full_server_is_not_taken_for_a_drained_one(tofino: TofinoSwitch, config: Path) -> None:
    """The selector group on a Tofino contains neither full nor drained servers, so a starting controller must
    distinguish them by other means."""
    config.write_text(config.read_text().replace("port: 80}", "port: 80, max_connections: 8}"))
    async with running(config):
        tofino.hold("load_first", 1, 8)
        await until(lambda: set(tofino.weights(1)) == {2}, "the full one to be left out")
    async with running(config) as again:
        assert [server["state"] for server in (await gather(again.controller))["services"][0]["servers"]] == [
            "full",
            "in",
        ]
        tofino.hold("load_first", 2, 8)
        admission = tofino.schema.meters[Meter.ADMISSION].id
        await until(lambda: tofino.meters[admission, 1].cir == 0, "nothing to be admitted")
        tofino.hold("load_first", 1, 0)
        await until(lambda: tofino.meters[admission, 1].cir == 255, "room again")
        assert set(tofino.weights(1)) == {1}


async def test_the_target_that_was_named_must_fit_the_program(config: Path, tmp_path: Path) -> None:
    controller = Controller(
        load(config), str(config), Trace(str(tmp_path / "trace.jsonl")), lambda _: None, target="bmv2"
    )
    with pytest.raises(SwitchError, match="is for tna, and bmv2 runs v1model; set another --target"):
        await controller.run()
