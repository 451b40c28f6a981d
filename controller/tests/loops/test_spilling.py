"""Tests of caps on open connections with the fake switch: full servers, refused connections, restarts, reloads."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from configs import web
from content import content
from fakeswitch import FakeSwitch, Memory
from finsy.proto import p4r
from live import Running, WriteConfig, running, settled, until
from sluice.balance import Counts
from sluice.config.load import parse
from sluice.features import Balance, world_of
from sluice.features.balance import spill
from sluice.loops.link import Link
from sluice.names import Meter, Register, Table
from sluice.switch.reconcile import Readback, reconcile
from sluice.switch.session import Session
from sluice.switch.state import State
from sluice.views.explaintext import render as explained
from sluice.views.metrics import StatusCollector
from sluice.views.status import gather
from sluice.views.statustext import render
from test_explain import explain
from virtual import Updates

WHOLE = {1: 128, 2: 128}


def capped(config: Path, s1: int | None = 8, s2: int | None = 4) -> Path:
    """Write these caps of the two servers to the configuration file; None: no cap."""
    text = config.read_text()
    for name, cap in (("s1", s1), ("s2", s2)):
        head, _, rest = text.partition(f"{{name: {name}, ")
        server, _, rest = rest.partition("}")
        server = server.partition(", max_connections")[0] + (f", max_connections: {cap}" if cap else "")
        text = f"{head}{{name: {name}, {server}}}{rest}"
    config.write_text(text)
    return config


def opened(switch: FakeSwitch, s1: int, s2: int) -> None:
    """Set the numbers of open connections of servers 1 and 2 in the switch."""
    for server, number in ((1, s1), (2, s2)):
        switch.hold("load_first", server, number)


def gate(switch: FakeSwitch) -> tuple[int, int] | None:
    """Return the rate (SYNs/s) and burst (SYNs) of service 1's admission meter; None: the meter is not configured."""
    config = switch.meters.get((switch.schema.meters[Meter.ADMISSION].id, 1))
    return None if config is None else (config.cir, config.cburst)


async def shown(it: Running) -> dict[str, Any]:
    return (await gather(it.controller))["services"][0]


def states(service: dict[str, Any]) -> list[str]:
    return [server["state"] for server in service["servers"]]


def told(it: Running) -> list[str]:
    return [event["text"] for event in it.controller.world.events.past if event["kind"] in ("full", "room")]


@pytest.mark.parametrize("mode", ["paper", "production", "fixed"])
async def test_a_full_server_gets_nothing_until_an_eighth_is_free(
    switch: FakeSwitch, write_config: WriteConfig, mode: str
) -> None:
    async with running(capped(write_config(mode=mode, period_s=10, window_s=10))) as it:
        opened(switch, 7, 3)
        await asyncio.sleep(3 * spill.READ_S)
        assert switch.weights(1) == WHOLE
        opened(switch, 8, 3)
        await until(lambda: switch.weights(1) == {2: 256}, "the full one to be left out")
        service = await shown(it)
        assert states(service) == ["full", "in"] and not service["refuses"]
        assert it.controller.world[Balance].views[1].balancer.ratios == {1: 0.5, 2: 0.5}, "R's ratios stay"
        opened(switch, 7, 3)
        await until(lambda: switch.weights(1) == WHOLE, "room again")
        assert gate(switch) is None


async def test_when_all_are_full_new_connections_are_refused_until_there_is_room(
    switch: FakeSwitch, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "ROOM_S", 0.2)
    async with running(capped(write_config())) as it:
        opened(switch, 8, 4)
        await until(lambda: gate(switch) == (0, 0), "nothing to be admitted")
        service = await shown(it)
        assert states(service) == ["full", "full"] and service["refuses"]
        assert "every server is full: new connections are refused" in render(await gather(it.controller))
        assert "open connections: s1 8 of 8, s2 4 of 4" in render(await gather(it.controller))
        why = explained(await explain(it.controller, "10.0.1.77:40000"))
        assert "a new SYN goes nowhere: every server is full, and the switch refuses it" in why
        collector = StatusCollector(it.controller, asyncio.get_running_loop())
        families = {
            family.name: family.samples for family in await asyncio.to_thread(lambda: list(collector.collect()))
        }
        assert [sample.value for sample in families["sluice_service_refuses"]] == [1]
        assert [sample.value for sample in families["sluice_server_max_connections"]] == [8, 4]
        full = [s.labels["server"] for s in families["sluice_server_state"] if s.labels["state"] == "full" and s.value]
        assert full == ["s1", "s2"]
        opened(switch, 8, 3)
        await until(lambda: gate(switch) is None, "admission again")
        assert switch.weights(1) == {2: 256}
        opened(switch, 0, 0)
        await until(lambda: len(told(it)) == 4, "all to be told")
        assert told(it)[:2] == [
            "web: s1 (8 of 8), s2 (4 of 4): full",
            "web: every server is full, new connections are refused",
        ]
        assert "web takes new connections again" in told(it)[2:]


async def test_a_configured_limit_comes_back_when_there_is_room(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = capped(write_config())
    config.write_text(config.read_text().replace("  servers:", "  admission: {rate_per_s: 1, burst: 1}\n  servers:"))
    async with running(config):
        assert gate(switch) == (1, 1)
        opened(switch, 8, 4)
        await until(lambda: gate(switch) == (0, 0), "nothing to be admitted")
    opened(switch, 8, 0)
    async with running(config):
        assert (gate(switch), switch.weights(1)) == ((1, 1), {2: 256}), "a limit of one is not close to none"


async def test_a_restarted_controller_finds_a_server_full_and_gives_it_its_share_later(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = capped(write_config())
    async with running(config):
        opened(switch, 8, 0)
        await until(lambda: switch.weights(1) == {2: 256}, "the full one to be left out")
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=0")
        assert states(await shown(again)) == ["full", "in"]
        opened(switch, 0, 0)
        await until(lambda: switch.weights(1) == WHOLE, "its share, which is not known any more, is the fair one")


async def test_all_full_is_found_and_left_by_a_restarted_controller(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = capped(write_config())
    async with running(config):
        opened(switch, 8, 4)
        await until(lambda: gate(switch) == (0, 0), "nothing to be admitted")
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=0")
    opened(switch, 0, 0)
    async with running(config):
        assert (gate(switch), switch.weights(1)) == (None, WHOLE), "from the first write on"


async def test_a_drained_server_is_no_room(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(capped(write_config())) as it:
        await it.controller.drain("s2", drain=True)
        opened(switch, 8, 0)
        await until(lambda: gate(switch) == (0, 0), "nothing to be admitted")
        assert states(await shown(it)) == ["full", "draining"]
        await it.controller.drain("s2", drain=False)
        assert (gate(switch), switch.weights(1)) == (None, {2: 256}), "at once"


def test_an_ejected_server_is_no_room() -> None:
    """Server 1 has no cap, but is ejected, because it answers no SYN.

    Clients are therefore refused if servers 2 and 3 are full.
    """
    more = "  - {name: s3, address: 10.0.2.3, port: 80}\n"
    world = world_of(parse(web(mode="production", more=more)))
    view = world[Balance].views[1]
    idle, busy = Counts(), Counts(syn=100, synack=100, completed=100)
    view.balancer.observe(0.0, dict.fromkeys((1, 2, 3), idle))
    view.balancer.observe(1.0, {1: Counts(syn=100), 2: busy, 3: busy})
    assert view.balancer.ejected == {1}
    view.update_full({2: 4, 3: 4}, {2: 4, 3: 3})
    assert not view.refuses and view.weights.keys() == {1, 3}
    view.update_full({2: 4, 3: 4}, {2: 4, 3: 4})
    assert view.refuses and world.state().refusing == {1}


async def test_reloads_lower_raise_and_lift_caps(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = capped(write_config(), s1=None, s2=None)
    async with running(config) as it:
        opened(switch, 6, 6)
        capped(config, s1=3, s2=None)
        await it.controller.reload()
        await until(lambda: switch.weights(1) == {2: 256}, "a cap below what is open")
        capped(config, s1=3, s2=3)
        await it.controller.reload()
        await until(lambda: gate(switch) == (0, 0), "both to be full")
        capped(config, s1=7, s2=3)
        await it.controller.reload()
        await until(lambda: switch.weights(1) == {1: 256} and gate(switch) is None, "room for one more")
        capped(config, s1=None, s2=None)
        assert any("choose" in line for line in await it.controller.preview())
        await it.controller.reload()
        assert (switch.weights(1), gate(switch)) == (WHOLE, None), "by the reload itself"
        assert states(await shown(it)) == ["in", "in"]


async def test_the_trace_has_the_weights_in_force(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(capped(write_config())) as it:
        opened(switch, 8, 0)
        await settled(it)
        await until(lambda: it.decisions()[-1]["servers"]["s1"]["full"], "a decision since")
        servers = it.decisions()[-1]["servers"]
        assert {name: server["weight"] for name, server in servers.items()} == {"s1": 0, "s2": 256}
        assert servers["s1"]["ratio"] == 0.5


async def test_a_full_server_of_a_group_is_full_in_all_and_remembered_clients_leave_it() -> None:
    """Two services share server x2: when x2 reaches its cap, it receives no new connection from either service.

    The entry of x2 is then marked as draining, so that remembered clients leave x2. A comparison of the complete state
    finds nothing left to write.
    """
    text = content().replace("address: 10.0.2.12, port: 8000}", "address: 10.0.2.12, port: 8000, max_connections: 5}")
    world = world_of(parse(text))
    memory, updates = Memory(), Updates()
    link = Link(cast(Session, updates), cast(Any, memory), Readback({}, {meter: {} for meter in Meter}, rounded=False))
    await link.apply(world.state())
    both = [s for s in world.plan.services if any(server.name == "x2" for server in s.servers)]
    (x2,) = {server.id for s in both for server in s.servers if server.name == "x2"}
    assert len(both) == 2 and all(s.caps == {x2: 5} for s in both)
    await memory.write(Register.LOAD_FIRST, x2, 5)
    updates.written.clear()
    await spill.spill_once(world, world[Balance].views, link, 0.0)
    assert all(x2 not in world[Balance].views[s.id].weights for s in both)
    servers = updates.pipeline.schema.tables[Table.SERVERS].id
    (moved,) = [u.entity.table_entry for _, u in updates.written if u.entity.table_entry.table_id == servers]
    assert int.from_bytes(moved.match[0].exact.value, "big") == x2
    assert moved.action.action.params[2].value == b"\x01"
    assert await _left(updates, world.state(), link) == 0, "what was written in parts is the whole"


async def _left(updates: Updates, state: State, link: Link) -> int:
    return await reconcile(cast(Session, updates), link._snapshot, state)  # pyright: ignore[reportPrivateUsage]


async def test_each_services_refusal_leaves_the_others_limits() -> None:
    more = "- {name: w2, address: 10.0.0.101, port: 80, admission: {rate_per_s: 9, burst: 9}, servers: [{name: t, "
    more += "address: 10.0.2.9, port: 80, max_connections: 1}]}"
    world = world_of(
        parse(web(more=more).replace("port: 80}\n  - {name: s2", "port: 80, max_connections: 1}\n  - {name: s2"))
    )
    memory, updates = Memory(), Updates()
    link = Link(cast(Session, updates), cast(Any, memory), Readback({}, {meter: {} for meter in Meter}, rounded=False))
    await link.apply(world.state())
    for server, number, kind in ((3, 1, p4r.Update.MODIFY), (1, 1, None), (3, 0, p4r.Update.MODIFY)):
        await memory.write(Register.LOAD_FIRST, server, number)
        updates.written.clear()
        await spill.spill_once(world, world[Balance].views, link, 0.0)
        meters = [u.type for _, u in updates.written if u.entity.HasField("meter_entry")]
        assert meters == ([] if kind is None else [kind])
        assert await _left(updates, world.state(), link) == 0
