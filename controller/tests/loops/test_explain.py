"""Tests of ``sluice explain``, which names the server of each connection of a client, and the reason."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from fakeswitch import FakeSwitch
from live import WriteConfig, running
from numpy.typing import NDArray
from sluice.addresses import from_text
from sluice.controller import Controller
from sluice.dataplane.connection import Connection
from sluice.dataplane.draws import GOLDEN, Draws
from sluice.dataplane.idle import PLACES
from sluice.features.balance.history import weights_at
from sluice.loops import controlclient
from sluice.loops.commands import Refused
from sluice.names import TICK_BASE, PinState
from sluice.switch.connections import read_slots
from sluice.switch.registers import Registers
from sluice.views import control
from sluice.views.explaintext import render

CLIENT, SERVICE = from_text("10.0.1.77"), from_text("10.0.0.100")
NOW = TICK_BASE + 1_000_000


def connection(port: int) -> Connection:
    return Connection(CLIENT.packed, port, SERVICE.packed, 80)


def pin(switch: FakeSwitch, port: int, server: int, state: PinState, *, way: int = 1, ago: int = 0) -> None:
    """Write a connection's slot as the switch does for a packet; `ago` is the slot's age in ticks.

    `way` 1 or 2 selects one of the two slots that a connection may occupy.
    """
    place = connection(port).place
    slot = place.slot_1 if way == 1 else place.slot_2
    key = place.fingerprint << 36 | state << 32 | (NOW - ago)
    for register, value in ((f"pin_key_{way}", key), (f"pin_server_{way}", server)):
        switch.registers[switch.schema.registers[register].id, slot] = value


def foreign(switch: FakeSwitch, port: int) -> None:
    """Fill both slots that a connection may occupy with other live connections."""
    place = connection(port).place
    for way, slot in ((1, place.slot_1), (2, place.slot_2)):
        key = (place.fingerprint ^ 1) << 36 | PinState.ESTABLISHED << 32 | NOW
        switch.registers[switch.schema.registers[f"pin_key_{way}"].id, slot] = key
        switch.registers[switch.schema.registers[f"pin_server_{way}"].id, slot] = 2


async def explain(controller: Controller, client: str, service: str = "web") -> Any:
    path = controller.world.config.control
    async with control.serve(controller, path):
        request = {"command": "explain", "client": client, "service": service}
        return await asyncio.to_thread(controlclient.ask, path, request)


async def test_a_pinned_connection_its_state_and_what_a_syn_gets(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config(mode="fixed")) as it:
        pin(switch, 40000, 2, PinState.ESTABLISHED, way=2)
        before, writes = dict(switch.registers), len(switch.writes)
        shown = await explain(it.controller, "10.0.1.77:40000")
        (connection,) = shown["connections"]
        assert (connection["server"], connection["state"], connection["way"], connection["over"]) == (
            "s2",
            "established",
            2,
            False,
        )
        assert (connection["weights_of"], connection["weights"]) == ("trace", {"s1": 128, "s2": 128})
        assert (shown["new"]["server"], shown["new"]["by"]) == ("s2", "pin")
        assert shown["limits"] == []
        text = render(shown)
        assert "10.0.1.77:40000 is pinned to s2: established (open)" in text
        assert "a new SYN would go to s2, by pin: the connection's pin is live" in text
        assert "limits on new connections: none" in text
        assert (switch.registers, len(switch.writes)) == (before, writes), "nothing is disturbed"


class Whole:
    """Registers of the fake switch, read as complete columns of one moment."""

    units = SimpleNamespace(pin_states=None)

    def __init__(self, switch: FakeSwitch) -> None:
        self._switch = switch

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        columns: list[NDArray[np.uint64]] = []
        for register in registers:
            known = self._switch.schema.registers[register]
            columns.append(np.zeros(known.size, np.uint64))
            for (number, cell), value in self._switch.registers.items():
                if number == known.id:
                    columns[-1][cell] = value
        return columns


async def test_since_when_a_connection_is_pinned(switch: FakeSwitch, write_config: WriteConfig) -> None:
    """The beginning of a connection is known only as an interval between two sweeps of the table.

    `looks` are the times of the sweeps.
    """
    looks = iter(1_700_000_000.0 + 60 * number for number in range(6))

    async def pinned(port: int) -> tuple[str, str]:
        shown = await explain(it.controller, f"10.0.1.77:{port}")
        (connection,) = shown["connections"]
        text = render(shown).splitlines()[3].strip()
        return connection["server"], text

    async def look(*, is_kept: bool = True) -> None:
        slots = await read_slots(cast(Registers, Whole(switch)))
        it.controller.world.ages.look(slots, np.full(len(slots.places), is_kept), next(looks))

    async with running(write_config(mode="fixed")) as it:
        pin(switch, 40000, 2, PinState.ESTABLISHED, way=2)
        server, text = await pinned(40000)
        assert (server, text.startswith("since when is not known before the controller's first look")) == ("s2", True)
        await look()
        pin(switch, 40001, 1, PinState.PENDING)
        first = "2023-11-14 22:13:20 UTC"
        assert await pinned(40000) == ("s2", f"since before {first}, the controller's first look at the table")
        assert await pinned(40001) == ("s1", f"since a time after {first}, the controller's last look at the table")
        await look()
        second = "2023-11-14 22:14:20 UTC"
        assert await pinned(40001) == ("s1", f"since a time from {first} to {second}")
        pin(switch, 40001, 1, PinState.CLOSED)
        await look()
        assert await pinned(40001) == ("s1", f"since a time from {first} to {second}"), "its end is no beginning"
        pin(switch, 40001, 1, PinState.PENDING)
        third = "2023-11-14 22:15:20 UTC"
        assert await pinned(40001) == ("s1", f"since a time after {third}, the controller's last look at the table")
        pin(switch, 40000, 1, PinState.ESTABLISHED, way=2)
        assert await pinned(40000) == ("s1", f"since a time after {third}, the controller's last look at the table")
        await look()
        await look(is_kept=False)
        await look()
        since = "since a time from 2023-11-14 22:17:20 UTC to 2023-11-14 22:18:20 UTC"
        assert await pinned(40001) == ("s1", since), "the one before had vanished: its slot was given up"


def test_the_weights_of_a_time_are_the_traces(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with trace.open("w") as file:
        for moment in range(1000):
            for service, weight in (("web", moment), ("mail", 0)):
                record = {"time": 1000.0 + moment, "service": service, "servers": {"s1": {"weight": weight}}}
                file.write(json.dumps(record) + "\n")
        file.write('{"time": 2000.0, "serv')
    for unix_s in (1000.0, 1000.5, 1001.0, 1499.9, 1998.7, 1999.0, 5000.0):
        at = min(int(unix_s), 1999)
        assert weights_at(trace, "web", unix_s) == (at, {"s1": at - 1000})
    assert weights_at(trace, "web", 999.9) is None
    assert weights_at(trace, "dns", 1500.0) is None
    trace.write_text("")
    assert weights_at(trace, "web", 1500.0) is None


async def test_a_new_connection_is_drawn_as_the_switch_draws(switch: FakeSwitch, write_config: WriteConfig) -> None:
    async with running(write_config(mode="fixed")) as it:
        for port in range(1000, 1016):
            new = (await explain(it.controller, f"10.0.1.77:{port}"))["new"]
            (first,) = Draws({1: 128, 2: 128}).by_hash(connection(port))
            assert (new["server"], new["by"]) == (f"s{first}", "choice")
        foreign(switch, 1000)
        new = (await explain(it.controller, "10.0.1.77:1000"))["new"]
        assert new["by"] == "capacity"
        assert "both of its slots" in new["why"]


async def test_second_look_weighs_open_connections(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(mode="fixed")
    config.write_text(config.read_text().replace("  servers:", "  second_look: true\n  servers:"))
    async with running(config) as it:
        for register in ("load_first", "load_other", "load_third", "load_fourth"):
            for server, load in enumerate((50, 2), 1):
                switch.registers[switch.schema.registers[register].id, server] = load
        number = switch.schema.registers["draw_point"].id
        for step in range(4):
            switch.registers[number, 1] = step * 2 * GOLDEN % (1 << 32)
            new = (await explain(it.controller, "10.0.1.77:1000"))["new"]
            assert (new["server"], new["by"]) == ("s2", "choice"), "it has less to do"
            assert "s1 has 50 open at weight 128" in new["why"]
            assert switch.registers[number, 1] == step * 2 * GOLDEN % (1 << 32)


@pytest.mark.parametrize("alike", [True, False])
async def test_an_idle_server_is_named(switch: FakeSwitch, write_config: WriteConfig, *, alike: bool) -> None:
    """The controller names an idle server of the queue as the next server.

    With servers of equal capacity the queue comes first; otherwise an idle server replaces two busy candidates.
    """
    config = write_config(mode="fixed")
    more = "".join(f"  - {{name: s{n}, address: 10.0.3.{n}, port: 80}}\n" for n in range(3, 9))
    last = "  - {name: s2, address: 10.0.3.2, port: 80}\n"
    text = (
        config.read_text()
        .replace("  servers:", "  second_look: true\n  looks: 2\n  servers:")
        .replace(last, last + more)
    )
    config.write_text(text if alike else text.replace("{name: s1, ", "{name: s1, capacity: 0.5, "))
    async with running(config) as it:

        def put(register: str, index: int, value: int) -> None:
            switch.registers[switch.schema.registers[register].id, index] = value

        for server in range(1, 9):
            for register in ("load_first", "load_other"):
                put(register, server, server not in {3, 5})
        for ticket, server in ((7, 5), (8, 3)):
            put("idle_queue", PLACES + ticket, server)
            for register in ("idle_ticket_first", "idle_ticket_head"):
                put(register, server, 1 << 16 | ticket)
        put("idle_ends", 1, 7 << 16 | 9)
        reasons: set[tuple[str, str]] = set()
        for step in range(30):
            put("draw_point", 1, step * 2 * GOLDEN % (1 << 32))
            new = (await explain(it.controller, "10.0.1.77:1000"))["new"]
            assert new["by"] == "choice"
            reasons.add((new["server"], re.sub(r".*\) s\d |;.*", "", new["why"])))
        assert {server for server, why in reasons if why == "has been idle for longest"} == {"s5"}
        assert {server for server, _ in reasons} == ({"s5"} if alike else {"s3", "s5"}), (
            "who is drawn and idle keeps it"
        )


async def test_drained_and_expired_pins_and_limits_are_said(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config(mode="fixed")
    config.write_text(config.read_text().replace("  servers:", "  admission: {rate_per_s: 250, burst: 25}\n  servers:"))
    async with running(config) as it:
        await it.controller.drain("s1", drain=True)
        pin(switch, 40000, 1, PinState.ESTABLISHED)
        shown = await explain(it.controller, "10.0.1.77:40000")
        assert (shown["new"]["server"], shown["new"]["by"]) == ("s2", "candidate")
        assert shown["limits"] == [{"limit": "admission", "rate_per_s": 250, "burst": 25}]
        text = render(shown)
        assert "s1 drains: it gets no new connections" in text
        assert "limit, admission of the service: 250 new connections/s, 25 at once" in text
        pin(switch, 40001, 1, PinState.PENDING, ago=100_000)
        (connection,) = (await explain(it.controller, "10.0.1.77:40001"))["connections"]
        assert connection["over"], "a pending pin is kept for seconds"
        assert connection["weights_of"] == "now", "the trace begins later"


@pytest.mark.parametrize(
    ("client", "service", "text"),
    [
        ("nobody", "web", "'nobody' is not a client; write ADDRESS or ADDRESS:PORT"),
        ("10.0.1.77:http", "web", "a port is a number from 1 to 65535"),
        ("10.0.1.77:0", "web", "a port is a number from 1 to 65535"),
        ("10.0.1.77:", "web", "a port is a number from 1 to 65535"),
        ("2001:db8::1", "web", "the switch carries IPv4 only"),
        ("10.0.1.77", "mail", "no service 'mail'; there is: web"),
    ],
)
async def test_mistakes_are_named(
    switch: FakeSwitch, write_config: WriteConfig, client: str, service: str, text: str
) -> None:
    async with running(write_config()) as it:
        with pytest.raises(Refused, match=text):
            await explain(it.controller, client, service)
