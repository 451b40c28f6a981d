"""A controller that closes idle connections on a test's demand, and its configuration for the switch of
topo.labs.closing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import yaml
from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.names import Action, Table
from sluice.switch.choice import program_for
from sluice.switch.closing import Closing, services_of
from sluice.switch.plan import make_plan
from sluice.switch.programmer import Programmer
from sluice.switch.registers import open_registers
from sluice.switch.secondlook import read_loads
from sluice.switch.session import Session

from topo.labs.closing import NEIGHBOURS, ClosingNetwork, configuration
from topo.plan.network import GRPC_PORT
from topo.testbed.network import SWITCH
from topo.tests.reached import reached

TIMEOUT_S = 30.0


@contextmanager
def configured(
    net: ClosingNetwork,
    change: Callable[[dict[str, Any]], None] = lambda document: None,
    neighbours: Mapping[str, tuple[int, str]] = NEIGHBOURS,
) -> Generator[Config]:
    """Program a network's switch with one service and one server, and yield the configuration. The switch's
    address in this configuration is forwarded to the switch's P4Runtime server while the context is active.

    ``change``: a function that changes the configuration; ``neighbours``: port and MAC address by IP address.
    """
    with reached(net.pid(SWITCH), GRPC_PORT) as address:
        document: dict[str, Any] = {**configuration(), "routes": [], "switch": {"address": address}}
        change(document)
        config = parse(yaml.safe_dump(document))
        with Programmer(config, neighbours):
            pass
        yield config


class Closer:
    """A controller that closes idle connections when a test calls it."""

    def __init__(self, config: Config, session: Session, closing: Closing, load: Callable[[], Awaitable[int]]) -> None:
        self.session = session
        self.closing = closing
        self.load = load
        ((self.server, self.service),) = services_of(make_plan(config)).items()

    async def idle(self, number: int) -> list[int]:
        """Wait until the switch has ``number`` idle connections, and return their flow numbers."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            noted = (await self.closing.read_idle(time.monotonic())).flow.tolist()
            idle = await self.closing.confirm_idle(noted, time.monotonic())
            assert {facts.server for facts in idle} <= {self.server}
            if len(idle) == number:
                return [facts.flow for facts in idle]
            await asyncio.sleep(0.02)
        raise AssertionError(f"{number} idle connections are not found")

    async def close(self, number: int) -> None:
        """Wait for ``number`` idle connections, and close them."""
        for flow in await self.idle(number):
            await self.closing.tickle(flow, self.service, 0.0)


def closing(config: Config, act: Callable[[Closer], Awaitable[None]]) -> None:
    """Run the test ``act`` with a controller that may close the server's idle connections."""

    async def run() -> None:
        at = config.switch
        async with Session(at.address, at.device_id, await program_for(at), at.election_id) as session:
            registers = await open_registers(session, None)
            stage = Closing(session, registers)
            await stage.prepare()
            await stage.prepare()
            (server,) = services_of(make_plan(config))
            how = {"measured": 0, "sampling": 0, "closed": 1, "send_cap": 0, "receive_cap": 0}
            match = P4TableMatch(server=server)
            entry = P4TableEntry(Table.RESOURCES, match=match, action=P4TableAction(Action.MANAGE, **how))
            entity = entry.encode(session.pipeline.schema)
            await session.write([p4r.Update(type=P4UpdateType.INSERT.vt(), entity=entity)])

            async def load() -> int:
                return (await read_loads(registers, [server]))[server]

            try:
                await act(Closer(config, session, stage, load))
            finally:
                await session.write([p4r.Update(type=P4UpdateType.DELETE.vt(), entity=entity)])

    asyncio.run(run())
