"""Servers' TCP resources as this controller manages them: the algorithms, what they read, and what they want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sluice.balance import Counts
from sluice.config.model import ServerConfig
from sluice.config.resources import ReceiveConfig, ResourcesConfig, SendConfig
from sluice.config.types import Size, in_bytes
from sluice.names import TICK_US
from sluice.resources import shares
from sluice.resources.columns import Columns, Flags
from sluice.resources.direction import LARGEST, Budget
from sluice.resources.idle import Closer, Idle, IdleOptions
from sluice.resources.learner import Learner
from sluice.resources.pauses import CONTROLS, DEFAULT_AGE_S, PauseAge
from sluice.resources.receive import ReceiveBudget
from sluice.resources.sharer import Caps, Decision, Defaults, Managed, Sharer
from sluice.switch.closing import Candidate, Closings, IdleFlows
from sluice.switch.plan import Plan

PROBE_S = 1.0
"""The switch takes a server's answer to a probe for so long."""
TRIES = 2
"""Linux answers one stray segment in 500 ms, and some firewalls none."""


class Stages(Protocol):
    """What the switch measures and does; every method raises SwitchError."""

    async def transfers(self) -> Columns:
        """The transfers of the interval that ends now."""
        ...

    async def cap(self, own: Caps) -> None:
        """Give connections caps of their own on what they are sent."""
        ...

    async def prepare(self) -> None:
        """Once before idle connections are closed, whenever the program may have been loaded."""
        ...

    async def idle(self, now_s: float) -> IdleFlows:
        """Connections that may be idle, as the switch last noted. ``now_s`` is the controller's time."""
        ...

    async def facts(self, flows: Sequence[int], now_s: float) -> Sequence[Candidate]:
        """Those of the connections that are idle and not closed."""
        ...

    async def probe(self, one: Candidate, least_age_s: float) -> None:
        """Ask a connection's server in its client's name: what it answers closes the connection, if that has been
        silent for the least age. Its facts have been read."""
        ...

    async def pauses(self, servers: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Responses by the pause in front of their last part, by server (``sluice.resources.pauses``)."""
        ...

    async def closings(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        """What became of probes, by server."""
        ...


@dataclass(slots=True)
class Idling:
    """A server whose idle connections are closed."""

    closer: Closer
    learner: Learner | None
    age: PauseAge
    """Its service's."""
    responses: int = 0
    """Of the server's in the last second, as far as they were acknowledged before anything else was asked."""
    connections: int = 0
    """Open, as last read."""
    idle: int = 0
    """Those that could be closed by their age."""
    asked: int = 0
    """Probes since the controller started."""
    lapsed: int = 0
    """Those of them that the server did not answer: the connection stays."""
    closings: Closings = field(default_factory=Closings)
    """As last read from the switch."""


@dataclass(slots=True)
class _Asked:
    """A connection that was probed."""

    last_s: float
    times: int
    is_open: bool = True
    """It is not known yet what became of it."""


class ResourcesView:
    """All services with ``resources``. Kept over reloads."""

    def __init__(self, plan: Plan) -> None:
        self.decision: Decision | None = None
        """The newest."""
        self.idling: dict[int, Idling] = {}
        """By server."""
        self.caps: Mapping[int, Defaults] = {}
        """What the switch is to hold for connections without a cap of their own, by server."""
        self._sharer = Sharer({})
        self._ages: dict[str, PauseAge] = {}
        """By service."""
        self._asked: dict[int, _Asked] = {}
        """By the connection's number."""
        self.configure(plan)

    def configure(self, plan: Plan) -> None:
        """Take over another configuration; what was learned of transfers and limits stays."""
        managed: dict[int, Managed] = {}
        idling: dict[int, Idling] = {}
        for service in plan.services:
            options = service.config.resources
            if options is None:
                continue
            for server, config in zip(service.servers, service.config.servers, strict=True):
                if options.send or options.receive:
                    managed[server.id] = managed_of(options, config)
                if options.idle is not None:
                    age = self._ages.setdefault(service.config.name, PauseAge(TICK_US / 1e6))
                    idling[server.id] = self._idling(server.id, options.idle, config, age)
        self._sharer.configure(managed)
        self.idling = idling
        self.caps = {server: self.caps.get(server, _alone(one)) for server, one in managed.items()}

    def _idling(self, server: int, options: IdleOptions, config: ServerConfig, age: PauseAge) -> Idling:
        limit = config.resources.limit if config.resources and config.resources.limit else options.limit
        before = self.idling.get(server)
        learner = None
        if options.learned:
            learner = Learner(limit)
            if before and before.learner and before.learner.limit and limit is None:
                learner.limit = before.learner.limit
        closer = Closer(options)
        closer.limit = learner.limit if learner else limit
        one = Idling(closer, learner, age)
        if before:
            one.connections, one.idle, one.closings = before.connections, before.idle, before.closings
            one.asked, one.lapsed = before.asked, before.lapsed
        return one

    def rebase(self, caps: Mapping[int, Defaults]) -> None:
        """The switch may be another one, or begin anew: these are the defaults that it holds."""
        self.caps = {server: caps.get(server, mine) for server, mine in self.caps.items()}
        self._sharer.rebase(self.caps)
        self._asked.clear()

    # -- buffers

    @property
    def shares(self) -> bool:
        """Whether any server's buffers are shared."""
        return bool(self._sharer.managed)

    @property
    def sharing(self) -> list[int]:
        """Servers whose buffers are shared."""
        return list(self._sharer.managed)

    def observe(self, columns: Columns, loads: Mapping[int, int]) -> Decision:
        """The end of an interval. ``loads`` are open connections of servers, where they are known."""
        self.decision = decision = self._sharer.observe(columns, loads)
        self.caps = decision.defaults
        return decision

    @property
    def written(self) -> Mapping[int, Defaults]:
        """The defaults that the switch has, by server."""
        return self._sharer.defaults

    def wrote(self, decision: Decision) -> None:
        """The switch has its caps and defaults."""
        self._sharer.wrote(decision)

    # -- idle connections

    def heed(self, now_s: float, pauses: Mapping[int, Sequence[int]]) -> None:
        """The pauses within servers' responses, cumulative: how long is idle."""
        for age in {id(one.age): one.age for one in self.idling.values()}.values():
            seen = age.observe(now_s, {server: pauses[server] for server, one in self.idling.items() if one.age is age})
            for server, responses in seen.items():
                self.idling[server].responses = responses
        for one in self.idling.values():
            if one.closer.options.least_age_s is None:
                one.closer.least_age_s = one.age.age_s

    def learn(self, now_s: float, ledger: Mapping[int, Counts]) -> None:
        """What servers have refused."""
        for server, counts in ledger.items():
            one = self.idling[server]
            if one.learner:
                one.learner.observe(now_s, one.connections, counts, one.responses)
                one.closer.limit = one.learner.limit

    def rebase_limits(self) -> None:
        """See Learner.rebase."""
        for one in self.idling.values():
            if one.learner:
                one.learner.rebase()

    @property
    def learning(self) -> list[int]:
        """Servers whose limit is learned."""
        return [server for server, one in self.idling.items() if one.learner]

    @property
    def probed(self) -> list[int]:
        """Connections that were probed; what became of them is not known yet, however long ago that was."""
        return [flow for flow, asked in self._asked.items() if asked.is_open]

    def choose(
        self, now_s: float, loads: Mapping[int, int], noted: IdleFlows, probed: Iterable[Candidate]
    ) -> dict[int, int]:
        """The connections to probe, and the server of each.

        ``noted`` are all that the switch knows of, ``probed`` those of ``self.probed`` that it still has as idle.
        Connections are listed of those servers only of which some are to be closed.
        """
        pending = self._pending(now_s, probed)
        barred = self._barred(now_s, noted) | pending.keys()
        servers = 1 + max(self.idling, default=0)
        least_s = np.full((2, servers), np.inf)
        for server, view in self.idling.items():
            least_s[:, server] = view.closer.least_age_s, self._control_age_s(server)
        known = noted.server < servers
        known &= ~np.isin(noted.flow, np.fromiter(barred, np.int64, len(barred)))
        old = known & (
            noted.idle_s >= least_s[(noted.flow % CONTROLS == 0).astype(np.intp), np.where(known, noted.server, 0)]
        )
        many = np.bincount(noted.server[old], minlength=servers)
        waiting, listed = Counter(pending.values()), _ByServer(noted, old)
        chosen: dict[int, int] = {}
        for server, view in self.idling.items():
            # Notes of connections that have ended stay until somebody looks.
            view.connections, view.idle = loads[server], min(loads[server], int(many[server]))
            for one in view.closer.choose(now_s, loads[server], listed.of(server), waiting[server]):
                chosen[one.slot] = server
        return chosen

    def _pending(self, now_s: float, probed: Iterable[Candidate]) -> dict[int, int]:
        """Those probed whose answer may still come, and the server of each; one that stays idle for longer has lapsed.

        The others have ended, or were active since. That a controller looks late says nothing of a server.
        """
        found = {one.flow: one for one in probed}
        pending: dict[int, int] = {}
        for flow in self.probed:
            asked, one = self._asked[flow], found.get(flow)
            since_s = now_s - asked.last_s
            if one is None or one.idle_s < since_s:
                del self._asked[flow]
            elif since_s < PROBE_S:
                pending[flow] = one.server
            else:
                asked.is_open = False
                if (view := self.idling.get(one.server)) is not None:
                    view.lapsed += 1
        return pending

    def _barred(self, now_s: float, noted: IdleFlows) -> set[int]:
        """Those of the connections probed before that are not to be probed again: twice at most while one is idle.

        One that was active since the last time begins anew; one that the switch has forgotten is forgotten here.
        """
        flows = np.fromiter(self._asked, np.int64, len(self._asked))
        _, places, rows = np.intersect1d(flows, noted.flow, assume_unique=True, return_indices=True)
        at = dict(zip(flows[places].tolist(), rows.tolist(), strict=True))
        barred: set[int] = set()
        for flow, asked in list(self._asked.items()):
            if asked.is_open:
                continue
            since_s = now_s - asked.last_s
            row = at.get(flow)
            if since_s >= PROBE_S if row is None else noted.idle_s[row] < since_s:
                del self._asked[flow]
            elif row is not None and asked.times >= TRIES:
                barred.add(flow)
        return barred

    def least_age_s(self, server: int, flow: int) -> float:
        """The server's connection of this number is not closed when it has been silent for less, in seconds."""
        return self._control_age_s(server) if flow % CONTROLS == 0 else self.idling[server].closer.least_age_s

    def _control_age_s(self, server: int) -> float:
        """The same of those few connections that show pauses longer than what was learned."""
        closer = self.idling[server].closer
        return closer.least_age_s if closer.options.least_age_s else max(DEFAULT_AGE_S, closer.least_age_s)

    def still(self, one: Candidate, server: int) -> bool:
        """Whether a chosen connection is what it was taken for."""
        return one.server == server and one.idle_s >= self.least_age_s(server, one.flow)

    def denied(self, now_s: float, flow: int, server: int) -> None:
        """A chosen connection has been active since it was noted: it is no candidate before it is noted anew."""
        self._asked[flow] = _Asked(now_s, TRIES, is_open=False)
        self.idling[server].closer.give_back(1)

    def asked(self, now_s: float, one: Candidate) -> None:
        """It has been probed."""
        before = self._asked.get(one.flow)
        self._asked[one.flow] = _Asked(now_s, 1 + (before.times if before else 0))
        self.idling[one.server].asked += 1


class _ByServer:
    """Some of the notes, by server; sorted once, and only when somebody asks."""

    def __init__(self, noted: IdleFlows, wanted: Flags) -> None:
        self._noted, self._wanted = noted, wanted

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The notes' rows by server, each server's in their order; and the server of each."""
        rows = np.flatnonzero(self._wanted)
        rows = rows[np.argsort(self._noted.server[rows], kind="stable")]
        return rows, self._noted.server[rows]

    def of(self, server: int) -> Iterator[Idle]:
        """A server's."""
        rows, servers = self._sorted
        first, end = np.searchsorted(servers, (server, server + 1))
        mine = rows[first:end]
        yield from map(Idle, self._noted.flow[mine].tolist(), self._noted.idle_s[mine].tolist())


def managed_of(options: ResourcesConfig, server: ServerConfig) -> Managed:
    """What a server has, as it is configured."""
    own = server.resources
    return Managed(
        _send(options.send, own.send if own else None),
        _receive(options.receive, own.receive if own else None),
        options.sampling,
    )


def _send(config: SendConfig | None, own: Size | None) -> Budget | None:
    if config is None:
        return None
    fixed = None if config.size is None else float(in_bytes(config.size))
    sharing = {"sabt": shares.sabt, "abt": shares.abt, "equal": shares.equal}.get(config.sharing)
    size = float(in_bytes(config.budget if own is None else own))
    return Budget(size, sharing or shares.fixed(fixed or 0.0), fixed, config.needs)


def _receive(config: ReceiveConfig | None, own: Size | None) -> ReceiveBudget | None:
    if config is None:
        return None
    fixed = None if config.size is None else float(in_bytes(config.size))
    return ReceiveBudget(float(in_bytes(config.budget if own is None else own)), fixed)


def _alone(managed: Managed) -> Defaults:
    """Before anything is measured: a connection can have all of it, and the switch looks at windows from the first."""
    send, receive = (
        0 if one is None else int(min(LARGEST, one.size if one.fixed is None else one.fixed))
        for one in (managed.send, managed.receive)
    )
    return Defaults(send, receive)
