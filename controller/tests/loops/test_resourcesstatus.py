"""Tests of servers' resources in `sluice status` and in the metrics of a controller that leads a switch."""

from __future__ import annotations

from typing import Any

import pytest
from fakeswitch import FakeSwitch
from live import WriteConfig, running, until
from sluice.features import Resources
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import Register
from sluice.resources.sharer import Decision
from sluice.views import status
from sluice.views.metrics import families
from sluice.views.statustext import render
from test_resources import Lab

RESOURCES = "{send: {budget: 1MB, needs: paper}, receive: {budget: 7MB}, idle: {limit: 100, rate: 1000}}"


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Replace the switch stages that the controller uses by a simulation."""
    it = Lab()

    def stages(_world: World, _link: Link) -> Lab:
        return it

    monkeypatch.setattr("sluice.features.resources.feature.SwitchStages", stages)
    return it


def decision_of(world: World) -> Decision:
    view = world[Resources].view
    assert view is not None and view.decision is not None
    return view.decision


def samples(shown: dict[str, Any]) -> dict[str, float]:
    return {
        f"{sample.name}{sorted(sample.labels.items())}": sample.value
        for family in families(shown)
        for sample in family.samples
        if sample.name.startswith(("sluice_buffers", "sluice_connections"))
    }


async def test_a_status_has_budgets_and_connections(lab: Lab, write_config: WriteConfig, switch: FakeSwitch) -> None:
    path = write_config()
    path.write_text(path.read_text().replace("  servers:", f"  resources: {RESOURCES}\n  servers:"))
    lab.open(1, 2, wants=600e3)
    async with running(path) as it:
        switch.count(Register.LOAD_FIRST, 1, 70)
        await until(lambda: len(lab.capped) > 0, "caps")
        await until(lambda: (view := it.controller.world[Resources].view) and view.idling[1].connections == 70, "loads")
        await until(lambda: decision_of(it.controller.world).receive[1].connections == 70, "loads, at the next second")
        shown = await status.gather(it.controller)
    first, second = (server["resources"] for server in shown["services"][0]["servers"])
    assert first["send"] | {"flight": 0, "need": 0} == {
        "budget": 1_000_000,
        "flight": 0,
        "need": 0,
        "share": 1_000_000,
        "transfers": 2,
        "capped": 2,
        "default_cap": 333_333,
    }
    assert second["send"]["transfers"] == 0
    assert first["idle"] == {
        "limit": 100,
        "learned": False,
        "open": 70,
        "idle": 0,
        "least_age_s": 10.0,
        "responses_seen": 0,
        "asked": 0,
        "lapsed": 0,
        "closed": 0,
        "taken_back": 0,
        "raced": 0,
    }
    text = render(shown)
    assert "s1 send buffers: 977 KiB; in flight" in text and "2 transfers, 2 of them below their need" in text
    assert first["receive"] == {"budget": 7_000_000, "connections": 70, "default_cap": 100_000}
    assert "s1 receive buffers: 6,836 KiB; 70 open connections, 98 KiB each" in text
    assert "s1 connections: 70 of 100, 0 idle for 10 s; closed 0 of 0 asked" in text
    metrics = samples(shown)
    assert (
        metrics["sluice_buffers_share_bytes[('direction', 'send'), ('server', 's1'), ('service', 'web')]"] == 1_000_000
    )
    assert (
        metrics["sluice_buffers_default_cap_bytes[('direction', 'receive'), ('server', 's1'), ('service', 'web')]"]
        == 100_000
    )
    assert metrics["sluice_connections_open[('server', 's1'), ('service', 'web')]"] == 70
    assert metrics["sluice_connections_closed_total[('server', 's1'), ('service', 'web')]"] == 0


async def test_a_controller_that_comes_back_writes_all_caps_again(
    lab: Lab, write_config: WriteConfig, switch: FakeSwitch
) -> None:
    path = write_config()
    path.write_text(path.read_text().replace("  servers:", f"  resources: {RESOURCES}\n  servers:"))
    lab.open(1, 1, wants=600e3)
    async with running(path) as it:
        await until(lambda: lab.connections[100].send > 0, "caps")
        first, lab.connections[100].send = lab.connections[100].send, 0
        await switch.restart()
        await until(lambda: it.ready(2), "the switch's return")
        await until(lambda: lab.connections[100].send == first, "caps")
        assert len(switch.entries("resources")) == 2
