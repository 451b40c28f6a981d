"""Tests of the interface of features: world, controller and status accept an additional feature."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configs import web
from fakeswitch import FakeSwitch
from live import WriteConfig, running, until
from sluice.balance import Counts
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.features import FEATURES, Balance, CrowdControl, Resources, world_of
from sluice.features.balance.trace import Trace
from sluice.features.crowd.baseline import BaselineFile
from sluice.loops.adoption import adopt
from sluice.loops.commands import Refused, reconfigure
from sluice.loops.link import Link
from sluice.loops.world import Feature, Task, World
from sluice.resources.sharer import Defaults
from sluice.switch.plan import Plan, Server, Service
from sluice.switch.reconcile import Readback
from sluice.switch.state import State
from sluice.views import status
from sluice.views.explain import closed_servers

CAPS = {1: Defaults(1000, 2000)}


class Greedy(Feature):
    """A feature that freezes all weights and caps the connections of server 1."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.calls: list[str] = []

    def configure(self, now_s: float) -> None:
        self.calls.append("configure")

    def restart_keys(self, fresh: Config) -> Iterable[str]:
        return ["punts"] if fresh.punts != self._world.config.punts else []

    async def prepare(self, plan: Plan) -> None:
        self.calls.append("prepare")
        if plan.config.connections.pending_s == 7:
            raise Refused("seven seconds are refused")

    def adopt(self, snapshot: Readback, now_s: float) -> None:
        self.calls.append("adopt")

    async def begin(self, link: Link) -> None:
        self.calls.append("begin")

    def tasks(self, link: Link) -> Mapping[str, Task]:
        async def run() -> None:
            self.calls.append("run")
            await asyncio.Event().wait()

        return {"greedy": run()}

    def stand_by(self) -> None:
        self.calls.append("stand by")

    def want(self, state: State) -> State:
        return replace(state, caps=CAPS)

    def holds(self, service: int) -> bool:
        return True

    def status(self) -> Mapping[str, Any]:
        return {"greedy": True}

    def service_status(self, service: Service) -> Mapping[str, Any]:
        return {"greedy": service.name}

    def server_status(self, service: Service, server: Server) -> Mapping[str, Any]:
        return {"state": "greedy"} if server.id == 1 else {}

    def unwilling(self) -> Mapping[int, str]:
        return {1: "is greedy"}


@pytest.fixture
def features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the feature Greedy to the list of features, so that every controller has it."""
    monkeypatch.setattr("sluice.features.FEATURES", (*FEATURES, Greedy))


def test_a_world_has_one_feature_of_each_kind() -> None:
    world = World.of(parse(web()), (Balance, Greedy))
    assert world[Greedy] is world[Greedy] and isinstance(world[Balance], Balance)
    with pytest.raises(KeyError, match="Resources"):
        world[Resources]


def test_the_desired_state_has_each_features_part() -> None:
    world = World.of(parse(web()), (*FEATURES, Greedy))
    assert world.state().caps == CAPS and world.state().weights == world_of(parse(web())).state().weights
    (service,) = world.plan.services
    state = world.state(service)
    assert not state.is_complete and state.plan.services == (service,) and state.caps == CAPS


def test_a_feature_holds_weights_and_is_named_where_servers_get_no_connections() -> None:
    world = World.of(parse(web()), (*FEATURES, Greedy))
    assert world.holds(1) and not world_of(parse(web())).holds(1)
    assert closed_servers(world)[1] == "is greedy"


def test_reload_and_adoption_reach_every_feature() -> None:
    world = World.of(parse(web()), (*FEATURES, Greedy))
    reconfigure(world, parse(web(mode="fixed")), 0.0)
    adopt(world, Readback(entries={}, meters={}), 1.0)
    assert world[Greedy].calls == ["configure", "adopt"]


@pytest.mark.usefixtures("features")
async def test_a_controller_runs_a_feature_and_shows_it(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config(mode="paper")) as it:
        greedy = it.controller.world[Greedy]
        await until(lambda: "run" in greedy.calls, "its task")
        assert greedy.calls == ["adopt", "begin", "run"]
        for lost in (0, 90):
            switch.count("ledger_syn", 1, 100)
            switch.count("ledger_synack", 1, 100 - lost)
        await until(lambda: it.decisions()[-1]["servers"]["s1"]["window"]["syn"] >= 100, "the losses")
        assert it.decisions()[-1]["reason"].startswith("held"), "its hold reaches the balancer"
        shown = await status.gather(it.controller)
        assert shown["greedy"] is True
        assert shown["services"][0]["greedy"] == "web"
        assert [server["state"] for server in shown["services"][0]["servers"]] == ["greedy", "in"]


@pytest.mark.usefixtures("features")
async def test_a_feature_takes_part_in_a_reload(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        greedy = it.controller.world[Greedy]
        write_config(more="connections: {pending_s: 7}")
        with pytest.raises(Refused, match="seven seconds are refused"):
            await it.controller.reload()
        assert "configure" not in greedy.calls
        write_config(more="punts: {burst: 7}")
        with pytest.raises(Refused, match=r"^punts has changed; that takes a restart"):
            await it.controller.reload()
        write_config()
        await it.controller.reload()
        await until(lambda: greedy.calls[-1] == "run", "its task to begin anew")
        assert greedy.calls[-3:] == ["prepare", "configure", "run"]


def test_a_configuration_that_is_only_tried_writes_and_reads_no_file(tmp_path: Path) -> None:
    """A reload first applies the new configuration to a copy of the world; the copy must not touch files."""
    config = parse(web(more=f"news: {{mode: production, baseline_file: {tmp_path / 'usual'}}}"))
    world = world_of(config)
    world[Balance].trace = Trace(tmp_path / "trace")
    world[CrowdControl].baseline = BaselineFile(lambda: 1.7e9)
    (tmp_path / "usual").write_text("no baseline")
    copy = deepcopy(world)
    reconfigure(copy, config, 0.0)
    copy[Balance].trace.write({"a": 1})
    assert (tmp_path / "trace").read_text() == ""
    assert copy[Balance] is not world[Balance] and copy.state().weights == world.state().weights
    balancer = copy[Balance].views[1].balancer
    balancer.observe(0.0, {1: Counts(), 2: Counts()})
    assert balancer is not world[Balance].views[1].balancer
