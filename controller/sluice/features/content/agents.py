"""The task that manages agents: it sends them rules and cookie keys, receives their reports, and decides which agents
are absent.

Rules change in three steps. First one agent gets the new rules, so that a mistake in the rules changes nothing. Then
the other agents get them. Last the switch gets the new generation number of the rules, which invalidates what the
switch remembered under the former rules. A connection retains the rules with which it began.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sluice.agents import cookies
from sluice.agents.abilities import Ability, Learned, merged
from sluice.agents.client import Agent, AgentError, AgentSilent, connected
from sluice.agents.cookies import Cookies
from sluice.agents.messages import GroupName, Problem, Report, ServiceCounts, configuration, shared
from sluice.config.content import REFUSE
from sluice.config.model import Config
from sluice.log import logger
from sluice.loops.commands import Refused
from sluice.loops.events import Kind
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import Meter, Table
from sluice.switch.plan import Plan, Service

from .state import Away, ContentState

_log = logger("agents")

TABLES = frozenset({Table.SERVERS, Table.CHOOSE_STABLE, Table.SERVICES, Table.DESTINATIONS})
METERS = frozenset({Meter.ADMISSION})
"""The tables and meters that change when agents appear or disappear: they determine which agents get clients, and
whether any client is admitted."""
INTERVAL_S = 0.5
"""Seconds between two reports of an agent."""
DEAD_S = 2.0
"""Seconds without a report after which an agent counts as absent, by watched time (`loops.watchedtime`)."""
LAST_S = 2 * DEAD_S
"""Seconds without a report after which an agent counts as absent if its connection is open and all other agents of the
service would be absent too. The cause may be the controller itself, so it has time to contact each agent once more over
a new connection."""
SHARE_AGAIN_S = 60.0
"""Seconds after which the controller repeats to an agent what other agents have learned. The agent forgets this after
ten minutes."""
_RETRY_S = 0.2
_LOOK_S = 0.25


@dataclass(slots=True)
class AgentView:
    """What the controller records about an agent."""

    control: str
    since_s: float
    """Time, by the event loop's clock, of the last report that listed all services that the agent is to serve. Before
    the first such report it is the time at which the controller began to listen to the agent."""
    has: bytes | None = None
    """The serialized configuration that the agent last accepted or refused; None before its first configuration."""
    report: Report | None = None
    """The newest report; None while the agent does not answer."""
    error: str = ""
    """The reason why the agent does not answer, or what it refuses."""
    refuses: bool = False
    """Whether the agent has refused its rules."""
    closed: bool = False
    """Whether the agent has closed the connection or refuses connections, so that it is certainly absent."""

    def serves(self, service: str) -> bool:
        """Return whether the agent can serve the service's clients."""
        return self.report is not None and service in self.report.services


@dataclass(frozen=True, slots=True)
class _Made:
    """A configuration message for an agent. It is valid as long as the objects from which it was made, the ``sources``,
    are the same."""

    sources: tuple[object, ...]
    message: Any
    text: bytes


class Agents:
    """The agents of all content services in the configuration."""

    def __init__(self, world: World, state: ContentState) -> None:
        self._world, self._state = world, state
        self.views: dict[str, AgentView] = {}
        """The state of each agent, by the address of its control port."""
        self._unread: Mapping[int, Mapping[int, int]] = {}
        """The value of State.unread that was last written: weights for services without any agent."""
        self._keys: Cookies | None = None
        self._made: dict[str, _Made] = {}
        """The configuration message of each agent. It is cached because an agent is checked several times a second, and
        serializing thousands of rules takes long."""

    async def follow(self, link: Link) -> None:
        """Configure the agents, receive their reports, and let the switch use the agents that answer.

        Never returns. Raises SwitchError.
        """
        now = asyncio.get_running_loop().time()
        controls = _controls(self._world.config)
        self.views = {control: self.views.get(control) or AgentView(control, now) for control in controls}
        for view in self.views.values():
            view.since_s = now  # no reports were received during a reload, or while the switch was lost
        tasks = [
            asyncio.create_task(self._follow_agent(view), name=f"agent:{view.control}") for view in self.views.values()
        ]
        try:
            await self._judge(link)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def prepare(self, plan: Plan) -> None:
        """Send the agents the rules of a plan before a reload applies the plan.

        Raises Refused, which names the agent, if an agent refuses the rules; all agents then get their former rules
        again. An agent that does not answer gets the rules once it answers.
        """
        wanted = [(control, self._wanted(plan, control)) for control in _controls(plan.config)]
        taken: list[str] = []
        answering = [(control, message) for control, message in wanted if self._answers(control)]
        for place, (control, message) in enumerate(answering):
            if message.SerializeToString(deterministic=True) == self.views[control].has:
                continue
            try:
                async with connected(control) as agent:
                    problems = await agent.configure(message)
            except AgentError as error:
                _log.warning("agent not configured", extra={"agent": control, "error": str(error)})
                continue
            if problems:
                await self._take_back(taken)
                raise Refused(f"agent {self._name(control)} refuses: {_listed(problems)}")
            taken.append(control)
            self.views[control].has = message.SerializeToString(deterministic=True)
            _log.info("agent configured", extra={"agent": control, "place": place})

    async def _take_back(self, controls: list[str]) -> None:
        for control in controls:
            with suppress(AgentError):
                async with connected(control) as agent:
                    self.views[control].has = None
                    await self._configure(agent, self.views[control])

    # -- one agent

    async def _follow_agent(self, view: AgentView) -> None:
        while True:
            try:
                async with connected(view.control) as agent, asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._keep_configured(agent, view))
                    await self._listen(agent, view)
            except* AgentError as group:
                error = group.exceptions[0]
                if view.error != str(error):
                    _log.warning("agent does not answer", extra={"agent": view.control, "error": str(error)})
                view.error, view.has, view.refuses = str(error), None, False
                view.closed = not isinstance(error, AgentSilent)
            await asyncio.sleep(_RETRY_S)

    async def _listen(self, agent: Agent, view: AgentView) -> None:
        """Receive an agent's reports. Never returns. Raises AgentError."""
        async with aclosing(agent.watch(INTERVAL_S, DEAD_S)) as reports:
            async for report in reports:
                if view.report is None:
                    _log.info("agent answers", extra={"agent": view.control})
                view.report, view.closed = _after(view.report, report), False
                if self._served(view.control) <= report.services.keys():
                    view.since_s = asyncio.get_running_loop().time()

    async def _keep_configured(self, agent: Agent, view: AgentView) -> None:
        """Send an agent its configuration whenever this changes. Never returns. Raises AgentError.

        Configuring is a task separate from receiving reports, because an agent compiles large rule sets for seconds.
        The task also sends what the other agents have learned about servers: after a change, after each configuration,
        and every SHARE_AGAIN_S.
        """
        time_s = asyncio.get_running_loop().time
        sent, sent_s = None, 0.0
        sources: tuple[object, ...] = ()
        learned: dict[GroupName, Learned] = {}
        while True:
            if await self._configure(agent, view):
                sent = None
            if not _are_same(sources, newest := self._sources(view)):
                sources, learned = newest, self._learned_by_others(view)
            if view.has is not None and (learned != sent or time_s() - sent_s >= SHARE_AGAIN_S):
                await agent.share(shared(learned))
                sent, sent_s = learned, time_s()
            await asyncio.sleep(_LOOK_S)

    def _sources(self, view: AgentView) -> tuple[object, ...]:
        """Return the objects on which the result of `_learned_by_others` depends: the plan, and what each other agent
        has learned. While they are the same objects, the result is the same."""
        reports = (other.report for other in self.views.values() if other is not view)
        return (self._world.plan, *(None if report is None else report.learned for report in reports))

    def _learned_by_others(self, view: AgentView) -> dict[GroupName, Learned]:
        """Return what other agents have learned about the groups that an agent serves. The agent's own reports are
        excluded: otherwise agents would refresh each other's entries, and no entry would ever expire."""
        served = self._served(view.control)
        return {
            (service.name, group.name): Learned(frozenset(server.id for server in group.servers), ability)
            for service, group in self._groups()
            if service.name in served and (ability := self.ability(service, group, but=view.control)) is not None
        }

    def ability(self, service: Service, group: Service, but: str | None = None) -> Ability | None:
        """Return what the answering agents, except the agent ``but``, have learned about a group's present servers;
        None if they have learned nothing."""
        name = (service.name, group.name)
        reports = [view.report for view in self.views.values() if view.report is not None and view.control != but]
        learned = [report.learned[name] for report in reports if name in report.learned]
        return merged(learned, (server.id for server in group.servers))

    def _groups(self) -> Iterator[tuple[Service, Service]]:
        """Yield each content service together with each of its groups of servers."""
        services = {service.name: service for service in self._world.plan.services}
        for service in services.values():
            for name in service.config.content.groups if service.config.content is not None else ():
                yield service, services[name]

    def _served(self, control: str) -> set[str]:
        """Return the names of the services that the agent at this control address is to serve."""
        return {service.name for service, _, address in self._each() if address == control}

    async def _configure(self, agent: Agent, view: AgentView) -> bool:
        """Send an agent its configuration unless the agent has it already. Returns whether it was sent. Raises
        AgentError."""
        sources = (self._world.plan, self._state.rules, self._cookies())
        known = self._made.get(view.control)
        if known is None or not _are_same(known.sources, sources):
            message = self._wanted(self._world.plan, view.control)
            self._made[view.control] = known = _Made(sources, message, message.SerializeToString(deterministic=True))
        message, wanted = known.message, known.text
        if view.has == wanted:
            return False
        problems = await agent.configure(message)
        # A refused configuration is not sent again until it changes.
        view.has, view.error, view.refuses = wanted, _listed(problems), bool(problems)
        if problems:
            _log.error("agent refuses its rules", extra={"agent": view.control, "problems": view.error})
        return True

    def _wanted(self, plan: Plan, control: str) -> Any:
        return configuration(plan, control, self._state.rules.following(plan.config), self._cookies())

    def _cookies(self) -> Cookies:
        path = Path(f"{self._world.config.control}.cookies")
        before = self._keys or cookies.load(path)
        self._keys = before.due(time.time())
        if self._keys is not before or not path.exists():
            cookies.save(path, self._keys)
        return self._keys

    # -- which agents are absent

    async def _judge(self, link: Link) -> None:
        """Decide repeatedly which agents are absent or leaving, and let the switch send clients only to the others.
        Never returns. Raises SwitchError."""
        while True:
            away = self._away()
            changed = away != self._state.away
            if changed:
                self._report(away.absent)
                self._state.away = away
            before, self._unread = self._unread, self._state.unread
            if changed or self._unread != before:
                self._report_unread(before.keys())
                if before.keys() - self._unread.keys():
                    # A service has an agent again. First end the mode in which the switch sends the service's clients
                    # directly to servers; only then let TABLES offer the agents. A SYN that the switch still treats by
                    # that mode must not be pinned to an agent.
                    await link.apply(self._world.state(), {Table.SERVICES})
                await link.apply(self._world.state(), TABLES, METERS)
            await asyncio.sleep(_LOOK_S)

    def _away(self) -> Away:
        absent: set[int] = set()
        leaving: set[int] = set()
        for service in self._world.plan.services:
            if service.is_content:
                views = {number: self.views[control] for of, number, control in self._each() if of is service}
                silent = self._silent(service, views)
                absent |= silent
                leaving |= {n for n in views.keys() - silent if (report := views[n].report) and report.draining}
        return Away(frozenset(absent), frozenset(leaving))

    def _silent(self, service: Service, views: Mapping[int, AgentView]) -> set[int]:
        """Return the numbers of those agents of a service that count as absent, and discard the last reports of agents
        that have sent no report for DEAD_S."""
        now_s = asyncio.get_running_loop().time()
        absent, may_be_present = set[int](), set[int]()
        for number, view in views.items():
            silent_s = now_s - view.since_s
            if silent_s >= DEAD_S:
                view.report = None
                view.error = view.error or f"silent for {DEAD_S:g} s"
            if view.serves(service.name):
                continue
            if silent_s >= DEAD_S or view.refuses or number in self._state.away.absent:
                absent.add(number)
            if silent_s < LAST_S and not (view.refuses or view.closed or number in self._state.away.absent):
                may_be_present.add(number)
        return absent - may_be_present if absent == set(views) else absent

    def _report(self, absent: frozenset[int]) -> None:
        for service, number, control in self._each():
            if number in absent - self._state.away.absent:
                fields = {"service": service.name, "agent": control, "error": self.views[control].error}
                _log.warning("agent is gone; others take its clients", extra=fields)
                self._world.events.report(Kind.AGENT, f"{service.name}: agent {control} is gone", **fields)
            elif number in self._state.away.absent - absent:
                _log.info("agent is back", extra={"service": service.name, "agent": control})
                self._world.events.report(
                    Kind.AGENT, f"{service.name}: agent {control} is back", service=service.name, agent=control
                )

    def _report_unread(self, before: Collection[int]) -> None:
        """Report the services that have lost their last agent, and those that have an agent again."""
        for service in self._world.plan.services:
            if (service.id in before) == (service.id in self._unread) or service.config.content is None:
                continue
            if service.id in before:
                _log.info("the service has an agent again", extra={"service": service.name})
                self._world.events.report(Kind.AGENT, f"{service.name} has an agent again", service=service.name)
                continue
            action = service.config.content.without_agents
            text = "are refused" if action == REFUSE else f"go to {action} unread"
            _log.error("the service has no agent left", extra={"service": service.name, "without_agents": action})
            self._world.events.report(
                Kind.AGENT,
                f"{service.name} has no agent left; new connections {text}",
                service=service.name,
                does=action,
            )

    def _each(self) -> Iterator[tuple[Service, int, str]]:
        for service in self._world.plan.services:
            if service.config.content is not None:
                for server, agent in zip(service.servers, service.config.content.agents, strict=True):
                    yield service, server.id, agent.control

    def _answers(self, control: str) -> bool:
        view = self.views.get(control)
        return view is not None and view.report is not None

    def _name(self, control: str) -> str:
        for service, number, address in self._each():
            if address == control:
                return f"{service.name}/{self._world.names(service)[number]}"
        return control

    # -- reports

    def view(self, service: Service, number: int) -> AgentView | None:
        """Return the state of an agent, given by its number as a server; None before ``follow`` runs."""
        return next((self.views.get(control) for s, n, control in self._each() if s is service and n == number), None)

    def total(self, service: Service) -> ServiceCounts:
        """Return the sum of the counts that all agents report for a service."""
        total = ServiceCounts()
        for view in self.views.values():
            if view.report is not None and service.name in view.report.services:
                total += view.report.services[service.name]
        return total


def _are_same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    """Return whether both tuples contain the same objects, so that results computed from the objects are still
    valid."""
    return len(before) == len(now) and all(a is b for a, b in zip(before, now, strict=True))


def _after(before: Report | None, report: Report) -> Report:
    """Return the report. If its agent has learned nothing new, ``learned`` is the same object as in the former
    report."""
    if before is None or before.learned != report.learned:
        return report
    return replace(report, learned=before.learned)


def _controls(config: Config) -> list[str]:
    """Return the control addresses of all agents, without duplicates."""
    addresses = [agent.control for service in config.services if service.content for agent in service.content.agents]
    return list(dict.fromkeys(addresses))


def _listed(problems: list[Problem]) -> str:
    return "; ".join(map(str, problems))
