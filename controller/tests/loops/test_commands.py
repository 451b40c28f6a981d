"""Tests of the commands drain, undrain, mode, reload and status over the control socket."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest
from fakeswitch import FakeSwitch
from live import PATIENCE_S, WriteConfig, feed, overload, rivals, running, settled, until
from sluice.controller import Controller
from sluice.loops import controlclient
from sluice.loops.commands import Refused
from sluice.switch.translate import DRAINING
from sluice.views import control
from sluice.views.statustext import render


async def _ask(controller: Controller, **request: Any) -> Any:
    path = controller.world.config.control
    async with control.serve(controller, path):
        return await asyncio.to_thread(controlclient.ask, path, request)


async def test_drained_server_gets_nothing_new_and_stays_drained_for_a_new_controller(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    config = write_config()
    async with running(config) as it:
        assert await _ask(it.controller, command="drain", server="s1") == (
            "s1 drains: no new connections, the old ones stay"
        )
        assert switch.weights(1) == {2: 256}
        assert switch.weights(1, "choose_stable") == {1: 128, 2: 128}, "unpinned connections keep their servers"
        assert [e.metadata for e in switch.entries("servers")].count(DRAINING) == 1
    async with running(config) as again:
        assert "updates=0" in again.lines[0]
        shown = await _ask(again.controller, command="status")
        assert [s["state"] for s in shown["services"][0]["servers"]] == ["draining", "in"]
        await _ask(again.controller, command="undrain", server="web/s1")
        assert switch.weights(1) == {1: 128, 2: 128}


async def test_last_server_is_not_drained(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        await _ask(it.controller, command="drain", server="s1")
        with pytest.raises(Refused, match="s2 is the last server of web that takes connections"):
            await _ask(it.controller, command="drain", server="s2")
        assert switch.weights(1) == {2: 256}


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"command": "drain", "server": "s9"}, "no server 's9'; there is: web/s1, web/s2"),
        ({"command": "mode", "service": "x", "mode": "paper"}, "no service 'x'; there is: web"),
        ({"command": "mode", "service": "web", "mode": "x"}, "no mode 'x'; there is: fixed, paper, production"),
        (
            {"command": "dance"},
            "no command 'dance'; there is: status, reload, drain, undrain, mode, explain, left, events",
        ),
    ],
)
async def test_mistakes_are_named(
    switch: FakeSwitch, write_config: WriteConfig, request_: dict[str, str], text: str
) -> None:
    async with running(write_config()) as it:
        with pytest.raises(Refused) as caught:
            await _ask(it.controller, **request_)
        assert str(caught.value) == text


async def test_mode_changes_at_run_time(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config(mode="fixed")) as it:
        feed(switch, 1, syn=100, synack=50)
        feed(switch, 2, syn=100, synack=100)
        await until(lambda: any(d["servers"]["s1"]["r"] == 1.0 for d in it.decisions()), "R of server 1")
        assert switch.weights(1) == {1: 128, 2: 128}
        await _ask(it.controller, command="mode", service="web", mode="paper")
        await until(lambda: switch.weights(1)[1] < 128, "R to decide")
        await _ask(it.controller, command="mode", service="web", mode="fixed")
        assert switch.weights(1) == {1: 128, 2: 128}


async def test_reload_takes_changes_over_and_keeps_numbers(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with running(config) as it:
        added = "  - {name: s3, address: 10.0.2.3, port: 80}\ncontrol:"
        text = config.read_text().replace("control:", added)
        config.write_text(text)
        await _ask(it.controller, command="reload")
        await until(lambda: len(switch.weights(1)) == 3, "the third server")
        assert sum(switch.weights(1).values()) == 256
        config.write_text(text.replace("  - {name: s1, address: 10.0.2.2, port: 80}\n", ""))
        await _ask(it.controller, command="reload")
        await until(lambda: set(switch.weights(1)) == {2, 3}, "the first server to leave")
        assert len(switch.entries("servers")) == 3, "its connections are still translated"
        assert len(switch.entries("origins")) == 3
    assert switch.pushes == 1


async def test_broken_or_too_deep_reload_changes_nothing(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with running(config) as it:
        good, writes = config.read_text(), len(switch.writes)
        config.write_text(good.replace("port: 80}", "port: 80000}", 1))
        with pytest.raises(Refused, match=r"sluice\.yaml:13: services\[0\]\.servers\[0\]\.port: .*65535"):
            await _ask(it.controller, command="reload")
        config.write_text(good.replace("device_id: 1", "device_id: 2"))
        with pytest.raises(Refused, match="switch has changed; that takes a restart"):
            await _ask(it.controller, command="reload")
        assert len(switch.writes) == writes


async def _status(controller: Controller) -> Any:
    """Return the controller's `status`, as soon as the controller leads.

    A write that the switch refuses makes the controller begin to lead anew.
    """
    shown: Any = {}
    async with asyncio.timeout(PATIENCE_S):
        while "services" not in shown:
            shown = await _ask(controller, command="status")
    return shown


async def _states(controller: Controller) -> list[str]:
    shown = await _status(controller)
    return [server["state"] for server in shown["services"][0]["servers"]]


@pytest.mark.parametrize("first", ["drain", "undrain"])
async def test_a_drain_that_the_switch_refuses_is_taken_back_and_does_not_come_again(
    switch: FakeSwitch, write_config: WriteConfig, first: str
) -> None:
    async with running(write_config()) as it:
        weights, states = {1: 128, 2: 128}, ["in", "in"]
        if first == "undrain":
            await _ask(it.controller, command="drain", server="s1")
            weights, states = {2: 256}, ["draining", "in"]
        switch.refuse_table = "servers"  # drain and undrain also change weights, which the switch accepts
        with pytest.raises(Refused, match="table servers is full"):
            await _ask(it.controller, command=first, server="s1")
        switch.refuse_table = None
        assert switch.weights(1) == weights
        assert await _states(it.controller) == states
        await switch.stop()
        await switch.start()
        await until(lambda: it.ready(2), "the second ready line")
        assert it.lines[-1].endswith("adopted=yes updates=0")
        assert switch.weights(1) == weights
        assert await _states(it.controller) == states


async def test_a_mode_that_the_switch_refuses_is_taken_back(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        await overload(switch)
        await settled(it)
        left, decided = switch.weights(1), len(it.decisions())
        switch.refuse_table = "choose"
        with pytest.raises(Refused, match="table choose is full"):
            await _ask(it.controller, command="mode", service="web", mode="fixed")
        switch.refuse_table = None
        assert (await _status(it.controller))["services"][0]["mode"] == "paper"
        await until(lambda: len(it.decisions()) > decided + 1, "the next decisions")
        assert it.decisions()[-1]["servers"]["s1"]["weight"] == left[1] < 100
        assert switch.weights(1) == left


async def test_a_drain_that_another_controller_undid_does_not_come_again(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    low, high = rivals(write_config)
    async with running(low) as it:
        await _ask(it.controller, command="drain", server="s1")
        async with running(high) as other:
            assert await _states(other.controller) == ["draining", "in"]
            await _ask(other.controller, command="undrain", server="s1")
        await until(lambda: it.ready(2), "the first controller to lead again")
        assert await _states(it.controller) == ["in", "in"]
        assert switch.weights(1) == {1: 128, 2: 128}


async def test_status_shows_what_goes_on(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config(mode="fixed")) as it:
        feed(switch, 1, syn=100, synack=50)
        switch.count("ledger_synack_again", 1, 25)
        feed(switch, 2, syn=100, synack=100)
        await until(lambda: any(d["servers"]["s1"]["r"] == 1.0 for d in it.decisions()), "R of server 1")
        shown = await _ask(it.controller, command="status")
    service = shown["services"][0]
    assert service["condition"] == "sick server"
    first = service["servers"][0]
    assert (first["r"], first["r_every_synack"], first["syn"]) == (1.0, pytest.approx(1 / 3), 100)
    text = render(shown)
    assert "s1 leaves connection requests unanswered; the others answer." in text
    assert "neighbours that do not answer ARP: 10.0.1.9, 10.0.2.2, 10.0.3.2" in text


async def test_standby_says_what_it_is(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config("a.yaml")), running(write_config("b.yaml"), ready=False) as standby:
        await until(lambda: standby.lines, "the standby line")
        assert (await _ask(standby.controller, command="status"))["role"] == "standby"
        with pytest.raises(Refused, match="does not lead the switch"):
            await _ask(standby.controller, command="drain", server="s1")


async def test_socket_of_a_living_controller_is_not_taken(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        path = it.controller.world.config.control
        async with control.serve(it.controller, path):
            with pytest.raises(control.ControlInUse):
                async with control.serve(it.controller, path):
                    pass


async def test_the_socket_is_its_owners_alone_before_it_listens(
    switch: FakeSwitch, write_config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    listen = asyncio.start_unix_server

    async with running(write_config()) as it:
        path = it.controller.world.config.control

        async def listening(*args: Any, **options: Any) -> asyncio.Server:
            modes.append(stat.S_IMODE(Path(path).stat().st_mode))
            return await listen(*args, **options)

        monkeypatch.setattr(asyncio, "start_unix_server", listening)
        async with control.serve(it.controller, path):
            assert modes == [0o600]


def test_no_controller_is_said() -> None:
    with pytest.raises(Refused, match="no controller listens on"):
        controlclient.ask("/nonexistent/sluice.sock", {"command": "status"})


async def test_cancelled_sender_does_not_cost_the_lead(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config()) as it:
        link = it.link
        for _ in range(20):
            sending = asyncio.create_task(link.session.send_packet(b"\0" * 1400, 1))
            await asyncio.sleep(0)
            sending.cancel()
        await asyncio.sleep(0.1)
        assert link.session.is_primary
        assert len([line for line in it.lines if "ready" in line]) == 1
        await _ask(it.controller, command="drain", server="s1")


async def test_packets_that_several_tasks_send_at_once_do_not_cost_the_lead(
    switch: FakeSwitch, write_config: WriteConfig
) -> None:
    async with running(write_config()) as it:
        link = it.link
        await asyncio.gather(*(link.session.send_packet(b"\0" * 1400, 1) for _ in range(500)))
        assert link.session.is_primary
