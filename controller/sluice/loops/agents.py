"""The task of agents: their rules and cookie keys, their health, and what they tell.

Rules change in three steps: one agent takes them, so that mistakes change nothing; then the others; then the switch has
their generation, and forgets what it remembered under the last one. A connection keeps the rules that it began with.
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
from sluice.names import Meter, Table
from sluice.switch.plan import Plan, Service

from .commands import Refused
from .events import Kind
from .link import Link
from .world import World

_log = logger("agents")

TABLES = frozenset({Table.SERVERS, Table.CHOOSE_STABLE, Table.SERVICES, Table.DESTINATIONS})
METERS = frozenset({Meter.ADMISSION})
"""What agents that come and go may change: who gets clients, and whether any is let in."""
INTERVAL_S = 0.5
"""Seconds between two reports of an agent."""
DEAD_S = 2.0
"""Seconds without a report after which an agent counts as gone, by watched time (`watchedtime`)."""
LAST_S = 2 * DEAD_S
"""The same for agents that would leave their service without any, and whose connections stand: when all are silent at
once the fault may be here, so each is asked a second time, by a new connection."""
SHARE_AGAIN_S = 60.0
"""Seconds after which an agent is sent again what others have learned: it forgets that after ten minutes."""
_RETRY_S = 0.2
_LOOK_S = 0.25


@dataclass(slots=True)
class AgentView:
    """What is known of an agent."""

    control: str
    since_s: float
    """When it last reported that it serves what it is to serve, or since when the controller listens, in the loop's
    time."""
    has: bytes | None = None
    """The configuration that it took."""
    report: Report | None = None
    """While it answers."""
    error: str = ""
    """Why it does not answer, or what it refuses."""
    refuses: bool = False
    """It does not take its rules."""
    closed: bool = False
    """Its end has closed the connection, or takes none: it is gone by evidence of its own."""

    def serves(self, service: str) -> bool:
        """Whether it can take the service's clients."""
        return self.report is not None and service in self.report.services


@dataclass(frozen=True, slots=True)
class _Made:
    """A configuration for an agent, as long as what it is made of stays."""

    made_of: tuple[object, ...]
    message: Any
    text: bytes


class Agents:
    """All agents of the configuration."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.views: dict[str, AgentView] = {}
        """By the place where they listen."""
        self._unread: Mapping[int, Mapping[int, int]] = {}
        """As last written; see State."""
        self._keys: Cookies | None = None
        self._made: dict[str, _Made] = {}
        """What each is to have: an agent is asked twice a second, and thousands of rules take a while to write."""

    async def follow(self, link: Link) -> None:
        """Configure them, hear them, and have the switch use those that answer. Never returns. Raises SwitchError."""
        now = asyncio.get_running_loop().time()
        controls = _controls(self._world.config)
        self.views = {one: self.views.get(one) or AgentView(one, now) for one in controls}
        for view in self.views.values():
            view.since_s = now  # no agent was listened to while a reload was applied, or the switch was away
        tasks = [asyncio.create_task(self._hear(view), name=f"agent:{view.control}") for view in self.views.values()]
        try:
            await self._judge(link)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def prepare(self, plan: Plan) -> None:
        """Have them take the rules of a plan that is to come. Raises Refused naming the agent that does not;
        then all have those that they had. One that does not answer gets them when it does."""
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

    async def _hear(self, view: AgentView) -> None:
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
        """Take in its reports. Never returns; raises AgentError."""
        async with aclosing(agent.watch(INTERVAL_S, DEAD_S)) as reports:
            async for report in reports:
                if view.report is None:
                    _log.info("agent answers", extra={"agent": view.control})
                view.report, view.closed = _after(view.report, report), False
                if self._served(view.control) <= report.services.keys():
                    view.since_s = asyncio.get_running_loop().time()

    async def _keep_configured(self, agent: Agent, view: AgentView) -> None:
        """Apart from its reports: an agent compiles large rules for seconds. Never returns; raises AgentError.

        Sends it what the other agents have learned of servers: when that changes, behind each configuration, and every
        SHARE_AGAIN_S, since the agent forgets it after ten minutes.
        """
        time_s = asyncio.get_running_loop().time
        sent, sent_s = None, 0.0
        made_of: tuple[object, ...] = ()
        learned: dict[GroupName, Learned] = {}
        while True:
            if await self._configure(agent, view):
                sent = None
            if not _are_same(made_of, sources := self._sources(view)):
                made_of, learned = sources, self._learned_by_others(view)
            if view.has is not None and (learned != sent or time_s() - sent_s >= SHARE_AGAIN_S):
                await agent.share(shared(learned))
                sent, sent_s = learned, time_s()
            await asyncio.sleep(_LOOK_S)

    def _sources(self, view: AgentView) -> tuple[object, ...]:
        """What `_learned_by_others` is made of: the plan, and what each of the others has learned."""
        others = (one for one in self.views.values() if one is not view)
        return (self._world.plan, *(one.report.learned if one.report is not None else None for one in others))

    def _learned_by_others(self, view: AgentView) -> dict[GroupName, Learned]:
        """Of the groups of the services that an agent serves: without its own, or nothing would ever age."""
        served = self._served(view.control)
        return {
            (service.name, group.name): Learned(frozenset(one.id for one in group.servers), ability)
            for service, group in self._groups()
            if service.name in served and (ability := self.ability(service, group, but=view.control)) is not None
        }

    def ability(self, service: Service, group: Service, but: str | None = None) -> Ability | None:
        """What agents have learned of a group's present servers: all that answer or, all ``but`` one."""
        name = (service.name, group.name)
        reports = [view.report for view in self.views.values() if view.report is not None and view.control != but]
        learned = [report.learned[name] for report in reports if name in report.learned]
        return merged(learned, (server.id for server in group.servers))

    def _groups(self) -> Iterator[tuple[Service, Service]]:
        """Content services, each with each of its groups."""
        services = {service.name: service for service in self._world.plan.services}
        for service in services.values():
            for name in service.config.content.groups if service.config.content is not None else ():
                yield service, services[name]

    def _served(self, control: str) -> set[str]:
        """Names of the services that the agent there is to serve."""
        return {service.name for service, _, place in self._each() if place == control}

    async def _configure(self, agent: Agent, view: AgentView) -> bool:
        """Give it what it is to do, if it has not got it; whether that was so. Raises AgentError."""
        made_of = (self._world.plan, self._world.rules, self._cookies())
        known = self._made.get(view.control)
        if known is None or not _are_same(known.made_of, made_of):
            message = self._wanted(self._world.plan, view.control)
            self._made[view.control] = known = _Made(made_of, message, message.SerializeToString(deterministic=True))
        message, wanted = known.message, known.text
        if view.has == wanted:
            return False
        problems = await agent.configure(message)
        # Asked again only when something changes: it would refuse the same again.
        view.has, view.error, view.refuses = wanted, _listed(problems), bool(problems)
        if problems:
            _log.error("agent refuses its rules", extra={"agent": view.control, "problems": view.error})
        return True

    def _wanted(self, plan: Plan, control: str) -> Any:
        return configuration(plan, control, self._world.rules.following(plan.config), self._cookies())

    def _cookies(self) -> Cookies:
        path = Path(f"{self._world.config.control}.cookies")
        before = self._keys or cookies.load(path)
        self._keys = before.due(time.time())
        if self._keys is not before or not path.exists():
            cookies.save(path, self._keys)
        return self._keys

    # -- their health

    async def _judge(self, link: Link) -> None:
        while True:
            absent, leaving = self._away()
            changed = (absent, leaving) != (self._world.absent, self._world.leaving)
            if changed:
                self._tell(absent)
                self._world.absent, self._world.leaving = absent, leaving
            before, self._unread = self._unread, self._world.unread
            if changed or self._unread != before:
                self._tell_unread(before.keys())
                if before.keys() - self._unread.keys():
                    # Before agents are chosen again: a SYN that is to pass unread would pin its connection to one.
                    await link.apply(self._world.state(), {Table.SERVICES})
                await link.apply(self._world.state(), TABLES, METERS)
            await asyncio.sleep(_LOOK_S)

    def _away(self) -> tuple[set[int], set[int]]:
        """Numbers of agents that are gone, and of those that end."""
        absent: set[int] = set()
        leaving: set[int] = set()
        for service in self._world.plan.services:
            if service.is_content:
                views = {number: self.views[control] for one, number, control in self._each() if one is service}
                away = self._silent(service, views)
                absent |= away
                leaving |= {n for n in views.keys() - away if (report := views[n].report) and report.draining}
        return absent, leaving

    def _silent(self, service: Service, views: Mapping[int, AgentView]) -> set[int]:
        """Of a service's agents, by number, those that do not serve it."""
        now_s = asyncio.get_running_loop().time()
        gone, may_be_here = set[int](), set[int]()
        for number, view in views.items():
            silent_s = now_s - view.since_s
            if silent_s >= DEAD_S:
                view.report = None
                view.error = view.error or f"silent for {DEAD_S:g} s"
            if view.serves(service.name):
                continue
            if silent_s >= DEAD_S or view.refuses or number in self._world.absent:
                gone.add(number)
            if silent_s < LAST_S and not (view.refuses or view.closed or number in self._world.absent):
                may_be_here.add(number)
        return gone - may_be_here if gone == set(views) else gone

    def _tell(self, absent: set[int]) -> None:
        for service, number, control in self._each():
            if number in absent - self._world.absent:
                fields = {"service": service.name, "agent": control, "error": self.views[control].error}
                _log.warning("agent is gone; others take its clients", extra=fields)
                self._world.events.tell(Kind.AGENT, f"{service.name}: agent {control} is gone", **fields)
            elif number in self._world.absent - absent:
                _log.info("agent is back", extra={"service": service.name, "agent": control})
                self._world.events.tell(
                    Kind.AGENT, f"{service.name}: agent {control} is back", service=service.name, agent=control
                )

    def _tell_unread(self, before: Collection[int]) -> None:
        """Say which services have lost their last agent, and which have one again."""
        for service in self._world.plan.services:
            if (service.id in before) == (service.id in self._unread) or service.config.content is None:
                continue
            if service.id in before:
                _log.info("the service has an agent again", extra={"service": service.name})
                self._world.events.tell(Kind.AGENT, f"{service.name} has an agent again", service=service.name)
                continue
            does = service.config.content.without_agents
            text = "are refused" if does == REFUSE else f"go to {does} unread"
            _log.error("the service has no agent left", extra={"service": service.name, "without_agents": does})
            self._world.events.tell(
                Kind.AGENT, f"{service.name} has no agent left; new connections {text}", service=service.name, does=does
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
        for service, number, place in self._each():
            if place == control:
                return f"{service.name}/{self._world.names(service)[number]}"
        return control

    # -- what they tell

    def view(self, service: Service, number: int) -> AgentView | None:
        """What is known of an agent, by its number as a server."""
        return next((self.views.get(control) for s, n, control in self._each() if s is service and n == number), None)

    def told(self, service: Service) -> ServiceCounts:
        """What all agents of a service tell of it, together."""
        total = ServiceCounts()
        for view in self.views.values():
            if view.report is not None and service.name in view.report.services:
                total += view.report.services[service.name]
        return total


def _are_same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    """Whether both have the same objects: what is made of them need not be made again."""
    return len(before) == len(now) and all(one is other for one, other in zip(before, now, strict=True))


def _after(before: Report | None, report: Report) -> Report:
    """The report, with the same object of what its agent has learned as the one before, where that is equal."""
    if before is None or before.learned != report.learned:
        return report
    return replace(report, learned=before.learned)


def _controls(config: Config) -> list[str]:
    places = [agent.control for service in config.services if service.content for agent in service.content.agents]
    return list(dict.fromkeys(places))


def _listed(problems: list[Problem]) -> str:
    return "; ".join(map(str, problems))
