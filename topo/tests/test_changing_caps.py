"""Tests of real transfers while the caps on their windows change all the time: every byte is correct, and no transfer
stalls because of a cap.

With `FULL=1` in the environment the test makes 10,000 transfers instead of 800, and the caps change every
second instead of every 0.2 s.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from sluice.config.model import Config
from sluice.names import Action, Register, Table
from sluice.resources.columns import NONE
from sluice.resources.sharer import Caps
from sluice.switch import caps, transfers
from sluice.switch.choice import program_for
from sluice.switch.plan import make_plan
from sluice.switch.registers import Registers, open_registers
from sluice.switch.session import Session

from topo.labs.closing import SERVER, ClosingNetwork
from topo.plan.network import CLIENT, VIP, WEB_PORT
from topo.tests import needs
from topo.tests.client import Transfers
from topo.tests.closer import configured
from topo.tests.server import Server

pytestmark = needs.ROOT

FULL = bool(os.environ.get("FULL"))
TRANSFERS, AT_ONCE, CHANGE_S = (10_000, 100, 1.0) if FULL else (800, 40, 0.2)
TIMEOUT_S = 600.0 if FULL else 60.0
TWIN_PORT = 81
LEAST, MOST = 6_000, 40_000
"""Smallest and largest cap, in bytes."""
SLACK = 1 << 14
PROMISED = 1 << 16
"""Largest window, in bytes, in a SYN or SYN-ACK; the switch does not cap these windows."""
RTO_S = 0.2
"""Linux's minimum retransmission timeout in seconds."""


@dataclass
class Seen:
    """The outcome of the transfers, and the changes of their caps."""

    transfers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    changes: int = 0
    capped: int = 0
    """Number of measured transfers whose own caps were set or removed, summed over all changes."""
    windows: list[int] = field(default_factory=list[int])
    """The server's windows in bytes as seen by the clients, of capped transfers and (`twins_windows`) of transfers to
    the service without caps."""
    twins_windows: list[int] = field(default_factory=list[int])


def add_twin(document: dict[str, Any]) -> None:
    """Add a second service `twin`, whose transfers the controller does not cap."""
    (web,) = document["services"]
    servers = [{"name": "s2", "address": str(SERVER.address), "port": TWIN_PORT}]
    document["services"] = [web, {**web, "name": "twin", "port": TWIN_PORT, "servers": servers}]


@pytest.fixture(scope="module")
def seen() -> Iterator[Seen]:
    with ClosingNetwork() as net, configured(net, add_twin) as config:
        server = Server("server", "0.0.0.0", (WEB_PORT, TWIN_PORT))
        net.await_listening(net.start_program(server, SERVER.name), SERVER.name, *server.ports)
        yield asyncio.run(changing(net, config))


async def changing(net: ClosingNetwork, config: Config) -> Seen:
    """Make transfers, and change their caps until the transfers have ended; return the outcome."""
    seen, random_caps = Seen(), random.Random(36)
    at = config.switch
    async with Session(at.address, at.device_id, await program_for(at), at.election_id) as session:
        registers = await open_registers(session, None)
        await manage(session, config, random_caps, P4UpdateType.INSERT)
        load = Transfers(f"{VIP}:{WEB_PORT}", f"{VIP}:{TWIN_PORT}", TRANSFERS, AT_ONCE)
        users = net.start_program(load, CLIENT.name)
        task = asyncio.create_task(asyncio.to_thread(users.result, TIMEOUT_S))
        while not (await asyncio.wait({task}, timeout=CHANGE_S))[0]:
            await manage(session, config, random_caps, P4UpdateType.MODIFY)
            seen.capped += await cap_some(registers, random_caps)
            seen.changes += 1
            seen.windows += await asyncio.to_thread(windows, net, WEB_PORT)
            seen.twins_windows += await asyncio.to_thread(windows, net, TWIN_PORT)
        seen.transfers = await task
    print({**seen.transfers, "changes": seen.changes, "capped": seen.capped})
    return seen


async def manage(session: Session, config: Config, source: random.Random, how: P4UpdateType) -> None:
    """Set random caps that apply to all transfers of the first service that have no cap of their own.

    ``how``: whether to insert or modify the server's entry.
    """
    (server,) = make_plan(config).services[0].servers
    sizes = {name: source.randint(LEAST, MOST) for name in ("send_cap", "receive_cap")}
    action = P4TableAction(Action.MANAGE, measured=1, sampling=0, closed=0, **sizes)
    entry = P4TableEntry(Table.RESOURCES, match=P4TableMatch(server=server.id), action=action)
    await session.write([p4r.Update(type=how.vt(), entity=entry.encode(session.pipeline.schema))])


async def cap_some(registers: Registers, source: random.Random) -> int:
    """For each measured transfer and each direction, set a random cap or remove the cap, with equal probability; return
    the number of measured transfers."""
    columns = await transfers.read(registers)
    in_use = columns.flow != NONE
    flow, fingerprint = columns.flow[in_use], columns.fingerprint[in_use]

    def sizes() -> Caps:
        return Caps(
            flow, fingerprint, np.array([source.choice((0, source.randint(LEAST, MOST))) for _ in flow], np.int64)
        )

    for register in (Register.SEND_CAP, Register.RECEIVE_CAP):
        await caps.write(registers, register, sizes())
    return len(flow)


def windows(net: ClosingNetwork, port: int) -> list[int]:
    """Return the server's window in bytes, as seen by the client, for each connection to the service on ``port``. Omit
    uploads of at most PROMISED bytes so far: a window from the handshake, which is not capped, may still apply to them.
    """
    lines = net.call(CLIENT.name, "ss", "-HtinO", "dport", "=", f":{port}").splitlines()
    matches = [re.search(r"bytes_acked:(\d+) .*snd_wnd:(\d+)", line) for line in lines]
    return [int(match[2]) for match in matches if match and int(match[1]) > PROMISED]


def test_every_byte_is_right(seen: Seen) -> None:
    assert (seen.transfers["transfers"], seen.transfers["wrong"], seen.transfers["errors"]) == (TRANSFERS, 0, [])
    assert seen.changes >= 3 and seen.capped > 0


def test_windows_keep_to_the_caps_and_those_of_twins_do_not(seen: Seen) -> None:
    assert 0 < max(seen.windows) <= MOST + SLACK < max(seen.twins_windows)


@pytest.mark.calm
def test_none_stalls_longer_than_the_twins_by_a_timeout(seen: Seen) -> None:
    assert seen.transfers["longest_s"] <= seen.transfers["longest_twin_s"] + RTO_S
