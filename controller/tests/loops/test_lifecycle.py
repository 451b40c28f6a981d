"""Tests of a controller's life against the fake switch: start, adoption, restarts, and a stand-by controller."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from fakeswitch import FakeSwitch
from finsy.proto import p4r
from live import Running, WriteConfig, feed, overload, rivals, run_once, running, settled, until
from sluice.config.load import load
from sluice.controller import Controller
from sluice.features import Balance
from sluice.features.balance.trace import Trace
from sluice.switch.errors import SwitchError


async def test_programs_an_empty_switch_and_says_so(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        assert it.lines == [
            f"sluice: ready switch={switch.address} device=1 services=1 servers=2 adopted=no updates=31"
        ]
    assert switch.pushes == 1
    assert switch.weights(1) == {1: 128, 2: 128}
    assert switch.weights(1, "choose_stable") == {1: 128, 2: 128}
    sizes = {"ports": 3, "owned": 4, "routes": 7, "services": 3, "egress_vlan": 1}
    assert {table: len(switch.entries(table)) for table in sizes} == sizes


async def test_loaded_server_loses_share_in_single_writes(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        before = len(switch.writes)
        await overload(switch)
        for request in switch.writes[before:]:
            assert len(request.updates) == 1, "a change of weights is one update in one request"
            assert request.updates[0].type == p4r.Update.MODIFY
        moved = [d for d in it.decisions() if d["wrote"]]
        assert moved[0]["servers"]["s1"]["r"] == 1.0
        assert moved[0]["servers"]["s1"]["ratio"] == 0.45


async def test_writes_nothing_while_nothing_changes(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        before = len(switch.writes)
        await until(lambda: len(it.decisions()) >= 5, "five decisions")
        assert len(switch.writes) == before


async def test_controller_restart_changes_nothing_in_the_switch(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with running(config) as it:
        await overload(switch)
        await settled(it)
    left, writes = switch.weights(1), len(switch.writes)
    async with running(config) as again:
        assert again.lines == [
            f"sluice: ready switch={switch.address} device=1 services=1 servers=2 adopted=yes updates=0"
        ]
        await until(lambda: len(again.decisions()) >= 2, "two decisions")
        assert switch.weights(1) == left
    assert switch.pushes == 1
    assert len(switch.writes) == writes


async def test_switch_restart_restores_everything_with_the_ratios_reached(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    async with running(write_config()) as it:
        await overload(switch)
        before = switch.weights(1)
        await switch.restart()
        await until(lambda: it.ready(2), "the second ready line")
        assert switch.weights(1)[1] <= before[1]
        assert len(switch.entries("services")) == 3
    assert switch.pushes == 2


async def test_program_without_a_cookie_is_recognised(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    await run_once(config)
    assert switch.config is not None
    switch.config.ClearField("cookie")
    async with running(config) as again:
        assert "adopted=yes" in again.lines[0]
    assert switch.pushes == 1


async def test_other_program_is_replaced(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    await run_once(config)
    assert switch.config is not None
    switch.config.cookie.cookie += 1
    switch.config.p4info.pkg_info.name = "basic"
    async with running(config) as again:
        assert "adopted=no" in again.lines[0]
    assert switch.pushes == 2


async def left_by_another_version(switch: FakeSwitch, config: Path) -> None:
    """Drain a server, then change the switch's program so that another version seems to have installed it."""
    async with running(config) as it:
        await it.controller.drain("s1", drain=True)
    assert switch.config is not None
    switch.config.cookie.cookie += 1


async def test_another_version_is_replaced_and_its_state_kept(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    await left_by_another_version(switch, config)
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=0")
        assert "its program was replaced, and its state kept" in again.controller.world.events.past[0]["text"]
        assert switch.weights(1) == {2: 256}
    assert switch.pushes == 2
    async with running(config) as again:
        assert "it ran this program already" in again.controller.world.events.past[0]["text"]
    assert switch.pushes == 2


async def test_a_version_whose_state_cannot_be_kept_stays(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    await left_by_another_version(switch, config)
    switch.keeps_nothing = "cell 7 is in use"
    it = Running(config)
    with pytest.raises(SwitchError, match=r"cell 7 is in use\. Nothing was changed.*sluice run --replace-program"):
        await it.controller.run()
    assert (it.lines, switch.pushes, switch.weights(1)) == ([], 1, {2: 256})


async def test_a_kind_of_switch_that_keeps_nothing_is_not_asked(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    await left_by_another_version(switch, config)
    controller = Controller(load(config), str(config), Trace(None), print, target="bmv2")
    with pytest.raises(SwitchError, match="of the kind bmv2 loses all state with its program"):
        await controller.run()
    assert switch.pushes == 1


async def test_connections_end_when_that_was_ordered(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    await left_by_another_version(switch, config)
    switch.keeps_nothing = "cell 7 is in use"
    said: list[str] = []
    controller = Controller(load(config), str(config), Trace(None), said.append, may_end_connections=True)
    task = asyncio.create_task(controller.run())
    try:
        await until(lambda: said, "the ready line")
        assert "adopted=no" in said[0]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (switch.pushes, len(switch.weights(1))) == (2, 2)


async def test_surplus_entries_of_an_adopted_switch_go(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    await run_once(config)
    text = config.read_text().replace("routes: [{to: 0.0.0.0/0, via: 10.0.1.9}]", "routes: []")
    config.write_text(text)
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=2")
    assert len(switch.entries("routes")) == 5


async def test_server_added_while_the_controller_was_away_is_new_and_numbers_stay(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = write_config()
    async with running(config) as it:
        await overload(switch)
        await settled(it)
    left = switch.weights(1)
    added = "  - {name: s0, address: 10.0.2.3, port: 80}\n  - {name: s1, address: 10.0.2.2"
    config.write_text(config.read_text().replace("  - {name: s1, address: 10.0.2.2", added))
    async with running(config):
        weights = switch.weights(1)
        assert set(weights) == {1, 2, 3}, "the first server of the file got the free number 3"
        assert weights[1] / weights[2] == pytest.approx(left[1] / left[2], rel=0.05)
        assert weights[3] == pytest.approx(256 / 3, abs=1)


async def test_second_controller_stands_by_and_takes_over(switch: FakeSwitch, write_config: WriteConfig) -> None:
    first_config, second_config = write_config("first.yaml"), write_config("second.yaml")
    async with running(first_config) as first:
        await overload(switch)
        await settled(first)
        second = running(second_config, ready=False)
        it = await second.__aenter__()
        await until(lambda: it.lines, "the second controller to say something")
        assert it.lines == [f"sluice: standby switch={switch.address} device=1"]
        await asyncio.sleep(0.2)
        assert it.decisions() == []
    left = switch.weights(1)
    try:
        await until(it.ready, "the second controller to take over")
        assert "adopted=yes updates=0" in it.lines[1]
        assert switch.weights(1) == left
        assert switch.pushes == 1
        await until(it.decisions, "its first decision")
        feed(switch, 1, syn=100, synack=10)
        feed(switch, 2, syn=100, synack=100)
        await until(lambda: switch.weights(1)[1] < left[1], "the second controller to move weights")
    finally:
        await second.__aexit__(None, None, None)


async def test_higher_configured_election_id_takes_over_and_the_other_stands_by(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    low, high = rivals(write_config)
    async with running(low) as loser:
        async with running(high) as winner:
            assert "adopted=yes" in winner.lines[0]
            await until(lambda: loser.lines[-1].startswith("sluice: standby"), "the other to stand by")
        await until(lambda: loser.ready(2), "the other to lead again")


class Relay:
    """A TCP relay to a switch; its connections can become silent while they stay open, as after a power failure."""

    def __init__(self, port: int) -> None:
        self._port, self._silent, self._pumps = port, asyncio.Event(), set[asyncio.Task[None]]()

    def silence(self) -> None:
        """Stop relaying on the existing connections; new connections still work."""
        self._silent.set()
        self._silent = asyncio.Event()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a client's connection to the switch; callback of the relay's TCP server."""
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        for source, sink in ((reader, back), (there, writer)):
            self._pumps.add(asyncio.create_task(self._pump(source, sink, self._silent)))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, silent: asyncio.Event) -> None:
        while data := await source.read(1 << 16):
            if silent.is_set():
                await asyncio.Event().wait()
            sink.write(data)
        sink.close()

    def close(self) -> None:
        """Cancel the tasks that relay; no bytes are relayed any more."""
        for pump in self._pumps:
            pump.cancel()


async def test_a_controller_that_stands_by_notices_that_its_switch_has_gone_without_a_word(
    switch: FakeSwitch, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.switch.session._LISTEN_S", 0.1)
    monkeypatch.setattr("finsy.p4client._DEFAULT_RPC_TIMEOUT", 1.0)
    relay = Relay(switch.port)
    server = await asyncio.start_server(relay.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    behind = write_config("behind.yaml")
    behind.write_text(behind.read_text().replace(switch.address, f"127.0.0.1:{port}"))
    try:
        async with running(write_config()), running(behind, ready=False) as it:
            await until(lambda: it.lines, "the second controller to stand by")
            relay.silence()
            await until(lambda: len(it.lines) == 2, "it to stand by anew")
            assert it.lines == [f"sluice: standby switch=127.0.0.1:{port} device=1"] * 2
    finally:
        server.close()
        relay.close()


async def test_nothing_is_left_waiting_for_a_lead_that_has_ended(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        await it.controller.reload()
        await switch.restart()
        await until(lambda: it.ready(2), "the second ready line")
    await asyncio.sleep(0.01)
    assert "role-changed" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_waits_for_a_switch_that_is_not_there_yet(
    switch: FakeSwitch, write_config: WriteConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config()
    await switch.stop()
    async with running(config, ready=False) as it:
        await asyncio.sleep(0.5)
        assert it.lines == []
        await switch.start()
        await until(it.ready, "the ready line")


async def test_refusal_quotes_the_update(switch: FakeSwitch, write_config: WriteConfig) -> None:
    switch.refuse_table = "servers"
    with pytest.raises(SwitchError) as caught:
        async with running(write_config()):
            pass
    text = str(caught.value)
    assert f"switch {switch.address}: write: RESOURCE_EXHAUSTED: table servers is full in update" in text
    assert "type: INSERT" in text


async def test_missing_registers_name_the_remedy(tmp_path: Path, pipeline_dir: Path) -> None:
    from configs import web

    async with FakeSwitch(registers_over_p4runtime=False) as bmv2:
        config = tmp_path / "sluice.yaml"
        config.write_text(web(bmv2.address, str(pipeline_dir)))
        with pytest.raises(SwitchError, match=r"set switch\.thrift"):
            await run_once(config)


async def test_controller_restart_keeps_what_was_ejected(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(mode="production")
    async with running(config) as it:
        feed(switch, 1, syn=100, synack=0)
        feed(switch, 2, syn=100, synack=100)
        await until(lambda: 1 in it.controller.world[Balance].ejected, "server 1 to be ejected")
        await until(lambda: switch.weights(1)[1] < 10, "server 1 to be at the probe floor")
        left = switch.weights(1)
    async with running(config) as again:
        assert again.lines[0].endswith("adopted=yes updates=0")
        await until(lambda: len(again.decisions()) >= 3, "three decisions")
        assert 1 in again.controller.world[Balance].ejected and switch.weights(1) == left
        feed(switch, 1, syn=10, synack=10)
        await until(lambda: not again.controller.world[Balance].ejected, "server 1 to take connections again")
