"""Tests of closing idle connections: what the controller reads from the switch, and the tickles (probes) it sends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fakeswitch import FakeSwitch
from finsy import P4CloneSessionEntry
from live import PATIENCE_S, Running, WriteConfig, running, until
from sluice.addresses import Address, from_text
from sluice.config.load import load, parse
from sluice.dataplane.units import MICROSECONDS
from sluice.features import Resources, world_of
from sluice.features.resources.stages import SwitchStages
from sluice.frames import tickle
from sluice.loops.link import Link
from sluice.names import CLOSE_SESSION, CPU_PORT, INTO_PIPELINE, ClosingStatus, Register
from sluice.switch import closing
from sluice.switch.closing import Candidate, services_of
from sluice.switch.plan import Plan, make_plan
from sluice.views import status

S1 = 1
CLIENT = "192.0.2.77"
LEAST_AGE_S = 2
IDLE = f"{{idle: {{limit: 4, threshold: 0.5, least_age_s: {LEAST_AGE_S}}}}}"
SECOND = int(1e6 / MICROSECONDS.tick_us)
OLDEST, OLD, YOUNG = 7, 70_005, 9


def idle(switch: FakeSwitch, flow: int, at: int, *, spoke: bool = True, status: int = ClosingStatus.OPEN) -> None:
    """Write the registers of a connection to s1 that the switch noted as idle at time `at` (in ticks of its clock).

    `status` is its present state. `spoke`: the last payload came from the server and was acknowledged; false after
    the client has sent payload again, so that the connection is no longer idle.
    """
    switch.hold(Register.CLOSING_HINT, flow % 4096, flow << 41 | S1 << 31 | at)
    switch.hold(Register.CLOSING_STATE, flow, status << 60 | (3 if spoke else 0) << 58 | at << 26)
    switch.hold(Register.CLOSING_PEER, flow, int(from_text(CLIENT)) << 31 | (40_000 + flow % 1000) << 15 | S1)


def cells(switch: FakeSwitch) -> None:
    """Mark three of four open connections as idle: OLD can be closed, YOUNG cannot yet, and OLDEST is active again."""
    idle(switch, OLDEST, 1 * SECOND, spoke=False)
    idle(switch, OLD, 2 * SECOND)
    idle(switch, YOUNG, 100 * SECOND)
    switch.count(Register.LOAD_FIRST, S1, 4)


def closes(write_config: WriteConfig) -> Path:
    path = write_config()
    path.write_text(path.read_text().replace("  servers:", f"  resources: {IDLE}\n  servers:"))
    return path


async def shown(it: Running) -> Mapping[str, Any]:
    """Return the status of idle connections on server s1."""
    return (await status.gather(it.controller))["services"][0]["servers"][0]["resources"]["idle"]


async def tickled(switch: FakeSwitch) -> tuple[int, bytes]:
    """Return egress port and frame of the controller's next tickle: a packet-out that enters the switch's pipeline.

    Earlier packet-outs, which leave by a port, are discarded.
    """
    while True:
        packet = await asyncio.wait_for(switch.packets_out.get(), PATIENCE_S)
        fields = switch.schema.controller_packet_metadata["packet_out"].decode(packet.metadata)
        if fields["egress_port"] == INTO_PIPELINE:
            return fields["egress_port"], packet.payload


async def test_the_longest_idle_connection_is_asked_in_its_clients_name(
    write_config: WriteConfig, switch: FakeSwitch
) -> None:
    async with running(closes(write_config)) as it:
        cells(switch)
        port, payload = await tickled(switch)
        service = services_of(it.controller.world.plan)[S1]
        assert port == INTO_PIPELINE
        assert int.from_bytes(payload[:4], "big") == LEAST_AGE_S * SECOND
        assert payload[4:] == tickle(from_text(CLIENT), 40_000 + OLD % 1000, *service)
        wanted = P4CloneSessionEntry(CLOSE_SESSION, replicas=[(CPU_PORT, 1)]).encode(switch.schema)
        assert [*switch.clone_sessions.values()] == [wanted.packet_replication_engine_entry.clone_session_entry]
        idle(switch, OLD, 2 * SECOND, status=ClosingStatus.CLOSED)
        switch.count(Register.LOAD_FIRST, S1, -2)
        switch.count(Register.CLOSING_TAKEN, S1, 5)
        switch.count(Register.CLOSING_TAKEN_BACK, S1, 3)
        switch.count(Register.CLOSING_RACED, S1, 2)
        view = it.controller.world[Resources].view
        assert view is not None
        idling = view.idling[S1]
        await until(lambda: idling.closings.closed == 5 and idling.connections == 2, "what became of it")
        status = await shown(it)
        assert (status["closed"], status["taken_back"], status["raced"], status["asked"]) == (5, 3, 2, 1)
        assert tickles_left(switch) == 0


def tickles_left(switch: FakeSwitch) -> int:
    """Remove all packet-outs that the test has not read from the switch's queue; return how many are tickles."""
    header = switch.schema.controller_packet_metadata["packet_out"]
    left = [switch.packets_out.get_nowait() for _ in range(switch.packets_out.qsize())]
    return sum(header.decode(packet.metadata)["egress_port"] == INTO_PIPELINE for packet in left)


async def test_a_switch_that_begins_anew_gets_its_clone_session_again(
    write_config: WriteConfig, switch: FakeSwitch
) -> None:
    async with running(closes(write_config)) as it:
        await until(lambda: switch.clone_sessions, "the clone session")
        await switch.restart()
        await until(lambda: it.ready(2) and switch.clone_sessions, "the clone session of the new one")
        cells(switch)
        await tickled(switch)


async def test_a_controller_that_comes_back_finds_the_clone_session(
    write_config: WriteConfig, switch: FakeSwitch
) -> None:
    path = closes(write_config)
    async with running(path):
        await until(lambda: switch.clone_sessions, "the clone session")
    async with running(path):
        cells(switch)
        await tickled(switch)
        assert len(switch.clone_sessions) == 1


async def test_services_are_looked_up_once_a_plan(write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller builds its lookup of services once for each plan, not once for each tickle.

    With a new plan, tickles go to the service's new port.
    """
    made: list[Plan] = []

    def counted(plan: Plan) -> dict[int, tuple[Address, int]]:
        made.append(plan)
        return services_of(plan)

    reported: list[tuple[int, tuple[Address, int]]] = []

    async def tickle_of(flow: int, service: tuple[Address, int], least_age_s: float) -> None:
        reported.append((flow, service))

    def fake(*_: object) -> SimpleNamespace:
        return SimpleNamespace(tickle=tickle_of)

    monkeypatch.setattr(closing, "services_of", counted)
    monkeypatch.setattr(closing, "Closing", fake)
    world = world_of(load(write_config()))
    stages = SwitchStages(world, cast(Link, SimpleNamespace(session=None, registers=None)))
    candidate = Candidate(flow=7, server=S1, idle_s=9.0)
    for port in (80, 81):
        world.plan = make_plan(parse(write_config().read_text().replace("port: 80\n", f"port: {port}\n", 1)))
        for _ in range(3):
            await stages.probe(candidate, LEAST_AGE_S)
    assert reported == [(7, (from_text("10.0.0.100"), port)) for port in (80, 81) for _ in range(3)]
    assert len(made) == 3, "at the start, and once for each plan"
