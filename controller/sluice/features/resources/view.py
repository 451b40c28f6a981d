"""The state of servers' TCP resources: the algorithms, what is known about connections, and the desired caps."""

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
"""Seconds for which the switch accepts a server's answer to a probe."""
TRIES = 2
"""The maximum number of probes of a connection while it stays idle. A second probe can succeed, because Linux answers
only one stray segment in 500 ms. A third probe would not: a server that answers neither of the first two is probably
behind a firewall that drops all stray segments."""


class Stages(Protocol):
    """The P4 stages that measure and cap transfers and close connections. Every method raises SwitchError."""

    async def transfers(self) -> Columns:
        """Return the measurements of the transfers of the interval that ends now."""
        ...

    async def cap(self, own: Caps) -> None:
        """Cap the send windows of single connections."""
        ...

    async def prepare(self) -> None:
        """Prepare for closing connections. It is called once whenever the program may have been loaded into the
        switch."""
        ...

    async def idle(self, now_s: float) -> IdleFlows:
        """Return the connections that the switch has reported as idle, except those that ``facts`` has discarded since;
        some may have become active again. ``now_s`` is the controller's time in seconds."""
        ...

    async def facts(self, flows: Sequence[int], now_s: float) -> Sequence[Candidate]:
        """Return those of the connections ``flows`` that are idle and not closed. ``idle`` does not return the other
        ones again until the switch reports them anew."""
        ...

    async def probe(self, candidate: Candidate, least_age_s: float) -> None:
        """Send a segment to a connection's server, with the client as source. The server's answer closes the
        connection. The switch drops the segment unless the connection has been silent for ``least_age_s`` seconds.
        ``facts`` must have returned the connection before."""
        ...

    async def pauses(self, servers: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Return by server the cumulative counts of responses, in classes by the length of their pauses
        (``sluice.resources.pauses``)."""
        ...

    async def closings(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        """Return the counts of the results of probes, by server."""
        ...


@dataclass(slots=True)
class Idling:
    """The state of a server whose idle connections are closed."""

    closer: Closer
    learner: Learner | None
    age: PauseAge
    """The age from which on a connection of the service counts as idle."""
    responses: int = 0
    """The server's responses in the last second. Only responses acknowledged before the next request are counted."""
    connections: int = 0
    """Number of open connections at the last reading."""
    idle: int = 0
    """Number of open connections that have been idle for long enough to be closed."""
    asked: int = 0
    """Number of probes since the controller started."""
    lapsed: int = 0
    """Number of probes that the server did not answer, so that the connection stays open."""
    closings: Closings = field(default_factory=Closings)
    """The counts of the results of probes, last read from the switch."""


@dataclass(slots=True)
class _Asked:
    """A connection that was probed, or that was chosen for a probe although it had become active."""

    last_s: float
    times: int
    is_open: bool = True
    """Whether the result of the probe is still unknown."""


class ResourcesView:
    """The resources of the servers of all services with ``resources``. The object survives reloads."""

    def __init__(self, plan: Plan) -> None:
        self.decision: Decision | None = None
        """The newest decision on buffers."""
        self.idling: dict[int, Idling] = {}
        """The servers whose idle connections are closed, by server number."""
        self.caps: Mapping[int, Defaults] = {}
        """The desired caps of connections without a cap of their own, by server number."""
        self._sharer = Sharer({})
        self._ages: dict[str, PauseAge] = {}
        """The learned age of idle connections, by service name."""
        self._asked: dict[int, _Asked] = {}
        """Connections that were probed or chosen for a probe, by flow number."""
        self.configure(plan)

    def configure(self, plan: Plan) -> None:
        """Take over another configuration. What was learned about transfers and limits stays."""
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
        self.caps = {server: self.caps.get(server, _alone(resources)) for server, resources in managed.items()}

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
        idling = Idling(closer, learner, age)
        if before:
            idling.connections, idling.idle, idling.closings = before.connections, before.idle, before.closings
            idling.asked, idling.lapsed = before.asked, before.lapsed
        return idling

    def rebase(self, caps: Mapping[int, Defaults]) -> None:
        """Take over the default caps that are in the switch, and forget all probes. The switch may be another one, or
        may have been restarted."""
        self.caps = {server: caps.get(server, desired) for server, desired in self.caps.items()}
        self._sharer.rebase(self.caps)
        self._asked.clear()

    # -- buffers

    @property
    def shares(self) -> bool:
        """Whether the buffers of any server are shared."""
        return bool(self._sharer.managed)

    @property
    def sharing(self) -> list[int]:
        """Servers whose buffers are shared."""
        return list(self._sharer.managed)

    def observe(self, columns: Columns, loads: Mapping[int, int]) -> Decision:
        """Decide on buffers at the end of an interval. ``loads`` are the open connections of servers, if known."""
        self.decision = decision = self._sharer.observe(columns, loads)
        self.caps = decision.defaults
        return decision

    @property
    def written(self) -> Mapping[int, Defaults]:
        """The default caps that are in the switch, by server."""
        return self._sharer.defaults

    def wrote(self, decision: Decision) -> None:
        """Record that the caps and defaults of a decision have been written to the switch."""
        self._sharer.wrote(decision)

    # -- idle connections

    def record_pauses(self, now_s: float, pauses: Mapping[int, Sequence[int]]) -> None:
        """Add the cumulative counts of pauses within servers' responses, which decide the age from which on connections
        are idle."""
        for age in {id(idling.age): idling.age for idling in self.idling.values()}.values():
            servers = [server for server, idling in self.idling.items() if idling.age is age]
            for server, responses in age.observe(now_s, {server: pauses[server] for server in servers}).items():
                self.idling[server].responses = responses
        for idling in self.idling.values():
            if idling.closer.options.least_age_s is None:
                idling.closer.least_age_s = idling.age.age_s

    def learn(self, now_s: float, ledger: Mapping[int, Counts]) -> None:
        """Learn the limits of servers from the connections that the servers have refused."""
        for server, counts in ledger.items():
            idling = self.idling[server]
            if idling.learner:
                idling.learner.observe(now_s, idling.connections, counts, idling.responses)
                idling.closer.limit = idling.learner.limit

    def rebase_limits(self) -> None:
        """Use the next reading of the servers' counts only as a base for learning limits."""
        for idling in self.idling.values():
            if idling.learner:
                idling.learner.rebase()

    @property
    def learning(self) -> list[int]:
        """Servers whose limit is learned."""
        return [server for server, idling in self.idling.items() if idling.learner]

    @property
    def probed(self) -> list[int]:
        """Probed connections whose result is still unknown, independently of the time since the probe."""
        return [flow for flow, asked in self._asked.items() if asked.is_open]

    def choose(
        self, now_s: float, loads: Mapping[int, int], noted: IdleFlows, probed: Iterable[Candidate]
    ) -> dict[int, int]:
        """Return the connections to probe: the server of each, by the connection's flow number.

        ``noted`` are all connections that the switch has reported as idle; ``probed`` are those of ``self.probed`` that
        are still idle. A server's connections are in the result only while the server has so many open connections
        that some are to be closed (``Closer.choose``).
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
        counts = np.bincount(noted.server[old], minlength=servers)
        waiting, listed = Counter(pending.values()), _ByServer(noted, old)
        chosen: dict[int, int] = {}
        for server, view in self.idling.items():
            # Some connections reported as idle have ended since, so their number can exceed that of open connections.
            view.connections, view.idle = loads[server], min(loads[server], int(counts[server]))
            for idle in view.closer.choose(now_s, loads[server], listed.of(server), waiting[server]):
                chosen[idle.slot] = server
        return chosen

    def _pending(self, now_s: float, probed: Iterable[Candidate]) -> dict[int, int]:
        """Return the probed connections whose answer may still arrive: the server of each, by flow number.

        A probe whose connection is still idle after PROBE_S has lapsed, and is counted for the server. A connection
        that is no longer idle has ended or was active. This is no evidence about the server, because the controller
        itself may have been late.
        """
        candidates = {candidate.flow: candidate for candidate in probed}
        pending: dict[int, int] = {}
        for flow in self.probed:
            asked, candidate = self._asked[flow], candidates.get(flow)
            since_s = now_s - asked.last_s
            if candidate is None or candidate.idle_s < since_s:
                del self._asked[flow]
            elif since_s < PROBE_S:
                pending[flow] = candidate.server
            else:
                asked.is_open = False
                if (view := self.idling.get(candidate.server)) is not None:
                    view.lapsed += 1
        return pending

    def _barred(self, now_s: float, noted: IdleFlows) -> set[int]:
        """Return the flow numbers of connections that were probed TRIES times while idle, and are not probed again.

        Connections that were active since the last probe may be probed again. Connections that ``noted`` no longer
        contains are forgotten.
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
        """Return the seconds for which a connection must have been silent before it is closed."""
        return self._control_age_s(server) if flow % CONTROLS == 0 else self.idling[server].closer.least_age_s

    def _control_age_s(self, server: int) -> float:
        """Return the age in seconds for the few control connections, which are closed later so that longer pauses are
        measured."""
        closer = self.idling[server].closer
        return closer.least_age_s if closer.options.least_age_s else max(DEFAULT_AGE_S, closer.least_age_s)

    def still(self, candidate: Candidate, server: int) -> bool:
        """Return whether a chosen connection still belongs to the server, and has been idle for long enough."""
        return candidate.server == server and candidate.idle_s >= self.least_age_s(server, candidate.flow)

    def denied(self, now_s: float, flow: int, server: int) -> None:
        """Record that a chosen connection was active since the switch reported it as idle. The connection is not chosen
        again until the switch reports it anew."""
        self._asked[flow] = _Asked(now_s, TRIES, is_open=False)
        self.idling[server].closer.give_back(1)

    def asked(self, now_s: float, candidate: Candidate) -> None:
        """Record that a connection has been probed."""
        before = self._asked.get(candidate.flow)
        self._asked[candidate.flow] = _Asked(now_s, 1 + (before.times if before else 0))
        self.idling[candidate.server].asked += 1


class _ByServer:
    """The rows of ``noted`` that ``wanted`` selects, by server. They are sorted at the first call of ``of``."""

    def __init__(self, noted: IdleFlows, wanted: Flags) -> None:
        self._noted, self._wanted = noted, wanted

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of the selected rows, ordered by server, and the server of each row."""
        rows = np.flatnonzero(self._wanted)
        rows = rows[np.argsort(self._noted.server[rows], kind="stable")]
        return rows, self._noted.server[rows]

    def of(self, server: int) -> Iterator[Idle]:
        """Yield the selected idle connections of a server."""
        rows, servers = self._sorted
        first, end = np.searchsorted(servers, (server, server + 1))
        selected = rows[first:end]
        yield from map(Idle, self._noted.flow[selected].tolist(), self._noted.idle_s[selected].tolist())


def managed_of(options: ResourcesConfig, server: ServerConfig) -> Managed:
    """Return a server's managed resources, by the configuration of its service and of the server itself."""
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
    """Return the default caps before the first measurement: the fixed cap if one is configured, else the size of the
    whole buffer, as for a single connection; 0 (no cap) for a direction whose buffers are not managed."""
    send, receive = (
        0 if buffer is None else int(min(LARGEST, buffer.size if buffer.fixed is None else buffer.fixed))
        for buffer in (managed.send, managed.receive)
    )
    return Defaults(send, receive)
