"""The stages of a switch that manage servers' resources, as the tasks use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.names import Register
from sluice.resources.columns import Columns
from sluice.resources.sharer import Caps
from sluice.switch import caps, closing, transfers
from sluice.switch.closing import Candidate, Closings, IdleFlows

from .link import Link
from .world import World


class SwitchStages:
    """See resourcesview.Stages. One for as long as a switch is led: notes of idle connections are kept here."""

    def __init__(self, world: World, link: Link) -> None:
        self._world, self._link = world, link
        self._closing = closing.Closing(link.session, link.registers)
        self._plan = world.plan
        self._services = closing.services_of(self._plan)

    async def transfers(self) -> Columns:
        """See Stages."""
        return await transfers.read(self._link.registers)

    async def cap(self, own: Caps) -> None:
        """See Stages."""
        await caps.write(self._link.registers, Register.SEND_CAP, own)

    async def prepare(self) -> None:
        """See Stages."""
        await self._closing.prepare()

    async def idle(self, now_s: float) -> IdleFlows:
        """See Stages."""
        return await self._closing.read_idle(now_s)

    async def facts(self, flows: Sequence[int], now_s: float) -> Sequence[Candidate]:
        """See Stages."""
        return await self._closing.confirm_idle(flows, now_s)

    async def probe(self, one: Candidate, least_age_s: float) -> None:
        """See Stages."""
        if self._plan is not self._world.plan:
            self._plan = self._world.plan
            self._services = closing.services_of(self._plan)
        await self._closing.tickle(one.flow, self._services[one.server], least_age_s)

    async def pauses(self, servers: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """See Stages."""
        return await self._closing.pauses(servers)

    async def closings(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        """See Stages."""
        return await self._closing.counts(servers)
