"""Tests of concurrent reloads, reloads that the switch refuses, and reloads that exceed its tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fakeswitch import FakeSwitch
from finsy.proto import p4r
from live import Running, WriteConfig, run_once, running, until
from sluice.balance import Mode
from sluice.config.load import load
from sluice.features import Balance, world_of
from sluice.loops.adoption import adopt
from sluice.loops.commands import Refused
from sluice.names import TICK_BASE, PinState, Register
from sluice.switch import pipeline
from sluice.switch.errors import SwitchError
from sluice.switch.reconcile import read_back
from sluice.switch.session import Session
from sluice.views.status import gather

OWN = "  - {name: s1, address: 10.0.2.2, port: 80}\n  - {name: s2, address: 10.0.3.2, port: 80}\n"
ALONE = "  - {name: s1, address: 10.0.2.2, port: 80}\n"
NO_ROOM = "600 servers and 600 retired ones, which may still have connections; the program holds 1023"


def put(config: Path, servers: str) -> None:
    """Replace the servers in the configuration file; `servers` is YAML text."""
    head, _, rest = config.read_text().partition("  servers:\n")
    config.write_text(f"{head}  servers:\n{servers}{rest[rest.index('control:') :]}")


def pool(first_port: int, servers: int) -> str:
    """Return the YAML text of `servers` servers with ports from `first_port`.

    Pools whose ports do not overlap have no server in common.
    """
    return "".join(
        f"  - {{name: x{first_port + n}, address: 10.0.2.{2 + n % 200}, port: {first_port + n}}}\n"
        for n in range(servers)
    )


async def asked(it: Running, config: Path, servers: str) -> asyncio.Task[str]:
    """Write these servers to the configuration and start a reload; return the reload's task."""
    put(config, servers)
    reload = asyncio.create_task(it.controller.reload())
    await asyncio.sleep(0)
    return reload


async def answers(*reloads: asyncio.Task[str]) -> list[str | BaseException]:
    """Return the results or exceptions of reloads; fail after 30 s."""
    async with asyncio.timeout(30):
        return await asyncio.gather(*reloads, return_exceptions=True)


async def test_a_reload_that_comes_while_another_one_is_written_is_answered(
    switch: FakeSwitch, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config()
    async with running(config) as it:
        session, writing, goes_on = it.link.session, asyncio.Event(), asyncio.Event()
        write = session.write

        async def slow(updates: Sequence[p4r.Update]) -> None:
            writing.set()
            await goes_on.wait()
            await write(updates)

        monkeypatch.setattr(session, "write", slow)
        first = await asked(it, config, ALONE)
        await writing.wait()
        second = await asked(it, config, OWN)
        goes_on.set()
        assert all(str(answer).startswith("reloaded: ") for answer in await answers(first, second))
        assert switch.weights(1).keys() == {1, 2}


BLUE_GREEN = """\
services:
- name: web
  address: 10.0.0.100
  port: 80
  balance: {mode: paper, period_s: 0.1, window_s: 1.0}
  servers:
  - {name: s1, address: 10.0.2.2, port: 80}
- name: web2
  address: 10.0.0.101
  port: 80
  balance: {mode: paper, period_s: 0.1, window_s: 1.0}
  servers:
  - {name: s2, address: 10.0.3.2, port: 80}
"""
"""A configuration in which server s2 has moved from service web to service web2."""


async def test_a_server_with_connections_does_not_move_to_another_service(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = write_config()
    async with running(config) as it:
        registers = it.link.registers
        text = config.read_text()
        config.write_text(text[: text.index("services:")] + BLUE_GREEN + text[text.index("control:") :])
        with pytest.raises(Refused, match=r"server s2 moves from service web to web2.*sluice drain web/s2"):
            # s2 has no connection, but while it is not drained, a new connection may arrive at any moment.
            await it.controller.reload()
        await it.controller.drain("web/s2", True)
        await registers.write(Register.PIN_KEY_1, 9, 1 << 36 | PinState.ESTABLISHED << 32 | TICK_BASE)
        await registers.write(Register.PIN_SERVER_1, 9, 2)
        with pytest.raises(Refused, match="server s2 moves"):
            await it.controller.reload()
        assert it.controller.world.plan.services[0].servers[1].name == "s2"
        await registers.write(Register.PIN_KEY_1, 9, 0)
        assert (await it.controller.reload()).startswith("reloaded: ")
        assert set(switch.weights(1)) == {1}
        assert set(switch.weights(2)) == {3}, "a number of its own in each service"


async def test_a_controller_refuses_a_switch_whose_server_is_now_another_services(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = write_config()
    async with running(config) as it:
        registers = it.link.registers
        await registers.write(Register.PIN_KEY_1, 9, 1 << 36 | PinState.ESTABLISHED << 32 | TICK_BASE)
        await registers.write(Register.PIN_SERVER_1, 9, 2)
    text = config.read_text()
    config.write_text(text[: text.index("services:")] + BLUE_GREEN + text[text.index("control:") :])
    async with Session(switch.address, 1, pipeline.load()) as session:
        world = world_of(load(config))
        world.pinned = frozenset({2})
        with pytest.raises(SwitchError, match=r"server s2 moves from service web to web2.*that it was left with"):
            adopt(world, await read_back(session), now_s=0)


async def test_a_number_that_pins_name_is_given_to_no_other_server(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = write_config()
    async with running(config) as it:
        registers = it.link.registers
        await registers.write(Register.PIN_KEY_1, 9, 1 << 36 | PinState.ESTABLISHED << 32 | TICK_BASE)
        await registers.write(Register.PIN_SERVER_1, 9, 3)
        put(config, f"{OWN}  - {{name: s3, address: 10.0.3.3, port: 80}}\n")
        await it.controller.reload()
        assert set(switch.weights(1)) == {1, 2, 4}


async def test_a_trace_that_no_one_opened_is_refused(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with running(config) as it:
        without = config.read_text()
        config.write_text(f"{without}news: {{trace_file: {config.with_suffix('.csv')}}}\n")
        with pytest.raises(Refused, match=r"^news\.trace_file has changed; that takes a restart"):
            await it.controller.reload()
        config.write_text(f"{without}news: {{}}\n")
        assert (await it.controller.reload()).startswith("reloaded: ")


async def test_all_hear_of_a_reload_that_the_switch_refuses(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with running(config) as it:
        await it.controller.set_mode("web", "fixed")
        switch.refuse_table = "choose"
        refused, behind = await answers(await asked(it, config, ALONE), await asked(it, config, OWN))
        assert isinstance(refused, SwitchError) and "table choose is full" in str(refused)
        assert isinstance(behind, Refused) and "reload again" in str(behind)
        await until(lambda: it.ready(2), "the controller to lead again, as before")
        assert switch.weights(1).keys() == {1, 2}
        assert it.controller.world[Balance].views[1].balancer.options.mode is Mode.FIXED
        switch.refuse_table = None
        (answer,) = await answers(await asked(it, config, ALONE))
        assert str(answer).startswith("reloaded: ")
        assert switch.weights(1).keys() == {1}


async def test_a_status_that_a_reload_overtakes_shows_what_is_there_then(
    switch: FakeSwitch, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config()
    async with running(config) as it:
        registers, reading, goes_on = it.link.registers, asyncio.Event(), asyncio.Event()
        columns = registers.columns

        async def slow(*wanted: Any) -> list[list[int]]:
            if (task := asyncio.current_task()) is not None and task.get_name() == "status":
                reading.set()
                await goes_on.wait()
            return await columns(*wanted)

        monkeypatch.setattr(registers, "columns", slow)
        status = asyncio.create_task(gather(it.controller), name="status")
        await reading.wait()
        (answer,) = await answers(await asked(it, config, ALONE))
        assert str(answer).startswith("reloaded: ")
        goes_on.set()
        assert [server["name"] for server in (await status)["services"][0]["servers"]] == ["s1"]


async def test_a_reload_whose_client_has_disconnected_is_still_applied(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = write_config()
    async with running(config) as it:
        gone = await asked(it, config, ALONE)
        gone.cancel()
        await until(lambda: switch.weights(1).keys() == {1}, "the reload")
        (answer,) = await answers(await asked(it, config, OWN))
        assert str(answer).startswith("reloaded: ")
        assert len(it.lines) == 1, "the controller has led all the time"


async def test_a_mistake_in_a_reload_reaches_its_asker(
    switch: FakeSwitch, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(*_: Any) -> None:
        raise RuntimeError("a mistake")

    config = write_config()
    async with running(config) as it:
        monkeypatch.setattr("sluice.controller.reconfigure", mistaken)
        (answer,) = await answers(await asked(it, config, ALONE))
        assert isinstance(answer, RuntimeError)


async def test_servers_that_retired_ones_leave_no_room_for_are_refused(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = write_config(period_s=0.5)
    put(config, pool(1000, 600))
    async with running(config) as it:
        writes = len(switch.writes)
        (answer,) = await answers(await asked(it, config, pool(5000, 600)))
        assert isinstance(answer, Refused)
        assert str(answer) == f"{NO_ROOM}: change fewer at a time, the next when those connections have ended"
        seen = len(it.decisions())
        await until(lambda: len(it.decisions()) > seen, "decisions to go on")
        assert it.controller.role == "primary" and len(it.lines) == 1
        assert len(switch.writes) == writes
        (answer,) = await answers(await asked(it, config, pool(1000, 400) + pool(5000, 200)))
        assert str(answer).startswith("reloaded: ")


async def test_reloads_that_there_is_room_for_one_by_one_only(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(period_s=0.5)
    put(config, pool(1000, 400))
    async with running(config) as it:
        reloads = [await asked(it, config, pool(port, 400)) for port in (2000, 3000)]
        first, second = await answers(*reloads)
        assert str(first).startswith("reloaded: ")
        assert isinstance(second, Refused) and "400 servers and 800 retired ones" in str(second)
        assert it.controller.role == "primary" and len(it.lines) == 1
        assert {server.port for server in it.controller.world.plan.servers} == set(range(2000, 2400))


async def test_a_start_that_there_is_no_room_for_says_what_to_do(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(period_s=0.5)
    put(config, pool(1000, 600))
    async with running(config):
        writes = len(switch.writes)
    put(config, pool(5000, 600))
    with pytest.raises(SwitchError) as caught:
        await run_once(config)
    assert str(caught.value) == (
        f"switch {switch.address}: {NO_ROOM}: start with the configuration that it was left with and change fewer at "
        "a time, or restart the switch"
    )
    assert len(switch.writes) == writes
