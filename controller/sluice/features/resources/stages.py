"""The P4 stages that manage servers' resources, behind the interface that the tasks use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import Register
from sluice.resources.columns import Columns
from sluice.resources.sharer import Caps
from sluice.switch import caps, closing, transfers
from sluice.switch.closing import Candidate, Closings, IdleFlows


class SwitchStages:
    """The stages of the switch that the controller leads (an implementation of view.Stages). The object stores which
    connections the switch has reported as idle, as long as the controller leads the switch."""

    def __init__(self, world: World, link: Link) -> None:
        self._world, self._link = world, link
        self._closing = closing.Closing(link.session, link.registers)
        self._plan = world.plan
        self._services = closing.services_of(self._plan)

    def __deepcopy__(self, memo: object) -> SwitchStages:
        """Return this object: a copied world only serves to try a configuration, and the switch stays the same."""
        return self

    async def transfers(self) -> Columns:
        """Read the measurements of the transfers of the interval that ends now."""
        return await transfers.read(self._link.registers)

    async def cap(self, own: Caps) -> None:
        """Write caps of single connections' send windows, in bytes, to the switch."""
        await caps.write(self._link.registers, Register.SEND_CAP, own)

    async def prepare(self) -> None:
        """Prepare the switch for closing connections, after a load of the program (creates a clone session)."""
        await self._closing.prepare()

    async def idle(self, now_s: float) -> IdleFlows:
        """Return the connections that the switch has reported as idle and that ``facts`` has not discarded since."""
        return await self._closing.read_idle(now_s)

    async def facts(self, flows: Sequence[int], now_s: float) -> Sequence[Candidate]:
        """Read from the switch which of the connections ``flows`` are idle and not closed. Discards the other ones from
        the list of idle connections."""
        return await self._closing.confirm_idle(flows, now_s)

    async def probe(self, candidate: Candidate, least_age_s: float) -> None:
        """Send a probe to a connection's server. The server's answer closes the connection; the switch drops the probe
        unless the connection has been idle for at least ``least_age_s`` seconds."""
        if self._plan is not self._world.plan:
            self._plan = self._world.plan
            self._services = closing.services_of(self._plan)
        await self._closing.tickle(candidate.flow, self._services[candidate.server], least_age_s)

    async def pauses(self, servers: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Read by server the cumulative counts of responses, in classes by the length of their pauses."""
        return await self._closing.pauses(servers)

    async def closings(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        """Read the counts of the results of probes, by server."""
        return await self._closing.counts(servers)
