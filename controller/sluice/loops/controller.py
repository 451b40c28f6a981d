"""The controller's life: find the switch, become primary, go on from what is there, run the tasks; and again."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice.balance import Mode
from sluice.config.load import load
from sluice.config.model import Config
from sluice.log import logger, switch_name
from sluice.switch.answers import subscribe
from sluice.switch.choice import program_for
from sluice.switch.connections import pins_of
from sluice.switch.errors import NotPrimary, SwitchError, SwitchLost
from sluice.switch.pipeline import Pipeline
from sluice.switch.plan import needs_new_numbers
from sluice.switch.reconcile import read_back
from sluice.switch.registers import open_registers
from sluice.switch.session import Session
from sluice.switch.upgrade import Program, ensure_program

from . import news, resources, spilling
from .adoption import adopt
from .agents import Agents
from .balancing import balance
from .baselinefile import BaselineFile
from .commands import Change, Refused, find_server, planned, reconfigure, set_drain, set_mode
from .events import Kind
from .link import Link
from .neighbours import Neighbours
from .newstrace import NewsTrace
from .resourcesview import Stages
from .stages import SwitchStages
from .sweep import kept_slots, sweep
from .trace import Trace
from .world import World

_log = logger("controller")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


@dataclass(frozen=True, slots=True)
class _Reload:
    """Who asked for it may have gone meanwhile: then nobody is told."""

    config: Config
    answer: asyncio.Future[str]

    def done(self, text: str) -> None:
        if not self.answer.done():
            self.answer.set_result(text)

    def failed(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Controller:
    """Drives one switch by one configuration. ``announce`` gets the lines that others wait for, ``status`` what is
    between them."""

    def __init__(
        self,
        config: Config,
        config_path: str,
        trace: Trace,
        announce: Callable[[str], None],
        news_trace: NewsTrace | None = None,
        *,
        target: str | None = None,
        may_end_connections: bool = False,
        status: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.world = World.of(config)
        self.config_path = config_path
        self.agents = Agents(self.world)
        self.link: Link | None = None
        """The switch while this controller leads it."""
        self.role = "connecting"
        self.reprogrammed = 0
        """How often the switch had lost the program after this controller had led it."""
        self._led = False
        self._trace = trace
        self._news_trace = news_trace or NewsTrace(None)
        self._news_trace_file = config.news.trace_file if config.news else None
        """As it was configured at the start: no other is opened."""
        self._announce, self._status = announce, status
        self._target = target
        self._may_lose = may_end_connections
        """The program may be loaded where that ends connections."""
        self._baseline = BaselineFile()
        self._pipeline: Pipeline | None = None
        """Once it is known what kind of switch it is."""
        self._stages: Stages | None = None
        """Those that manage servers' resources, as long as this controller leads."""
        self._reload_wanted = asyncio.Event()
        self._reloads: deque[_Reload] = deque()
        """Those that wait for their turn, and the one that has it."""
        self._turn = asyncio.Lock()
        """Commands take turns: one that the switch does not take leaves everything as the last one left it."""

    async def run(self) -> None:
        """Never returns. Raises SwitchError when the switch refuses to be programmed the first time."""
        at = self.world.config.switch
        switch_name.set(at.address)
        if (task := asyncio.current_task()) is not None:
            task.set_name("lead")
        pause, quiet = _FIRST_PAUSE_S, False
        while True:
            try:
                if self._pipeline is None:
                    self._pipeline = await program_for(at, self._target)
                async with Session(at.address, at.device_id, self._pipeline, at.election_id) as session:
                    quiet = False
                    if not session.is_primary:
                        self.role = "standby"
                        self.world.stand_by()
                        self._announce(f"sluice: standby switch={at.address} device={at.device_id}")
                        await session.until_primary()
                    await self._lead(session)
                    raise AssertionError("leading a switch ends with an error")
            except NotPrimary as error:
                _log.warning("not primary any more", extra={"error": str(error)})
                self._lost(f"not primary any more: {error}")
            except SwitchLost as error:
                level = logging.DEBUG if quiet else logging.WARNING
                _log.log(level, "switch lost; trying again", extra={"error": str(error)})
                if not quiet:
                    self._lost(f"switch lost: {error}")
                quiet = not self._led and self.role == "connecting"
            except SwitchError as error:
                if not self._led:
                    raise
                _log.error("switch refused; trying again", extra={"error": str(error)})
                self._lost(f"switch refused: {error}")
            pause = _FIRST_PAUSE_S if self.role != "connecting" else min(pause * 2, _LONGEST_PAUSE_S)
            self.role = "connecting"
            await asyncio.sleep(pause)

    def _lost(self, text: str) -> None:
        self._status(f"sluice: connecting; {text}")
        self.world.events.tell(Kind.LINK, text, switch=self.world.config.switch.address, up=False)

    async def _lead(self, session: Session) -> None:
        program = await ensure_program(session, may_end_connections=self._may_lose)
        await subscribe(session)
        found = await read_back(session)
        registers = await open_registers(session, self.world.config.switch.thrift)
        link = Link(session, registers, found, asyncio.get_running_loop().time())
        try:
            if found.services and needs_new_numbers(self.world.config, found.services, found.origins.values()):
                await self._look_at_pins(link)
            self._baseline.expire(self.world)
            self._baseline.restore(self.world)
            adopt(self.world, found, asyncio.get_running_loop().time())
            await spilling.look(self.world, link)
            updates = await link.apply(self.world.state())
            self.link, self.role = link, "primary"
            self.reprogrammed += self._led and not program.adopted
            self._led = True
            self._announce_ready(program, updates)
            while True:
                self._reload_wanted.clear()
                await _until_first(self._tasks(session, link), self._reload_wanted)
                await self._apply_reloads(link)
        finally:
            self.link = self._stages = None
            self._drop_reloads()
            await registers.close()

    async def _look_at_pins(self, link: Link) -> None:
        """Which servers have connections: what decides whether a server may move, and whose number is free."""
        now_s = asyncio.get_running_loop().time()
        self.world.held = pins_of(*await kept_slots(self.world, link.registers, link.clock, now_s)).pinned

    def _announce_ready(self, program: Program, updates: int) -> None:
        at, plan = self.world.config.switch, self.world.plan
        text = f"leads the switch; {program.value}, {updates} updates"
        self.world.events.tell(Kind.LINK, text, switch=at.address, up=True, adopted=program.adopted, updates=updates)
        self._announce(
            f"sluice: ready switch={at.address} device={at.device_id} services={len(plan.services)} "
            f"servers={len(list(plan.servers))} adopted={'yes' if program.adopted else 'no'} updates={updates}"
        )

    def _tasks(self, session: Session, link: Link) -> Mapping[str, Coroutine[Any, Any, None]]:
        neighbours = Neighbours(self.world, link)
        tasks: dict[str, Coroutine[Any, Any, None]] = {
            "session": session.until_ended(),
            "arp": neighbours.ask(),
            "packets": neighbours.listen(),
            "sweep": sweep(self.world, link),
            "neighbours": neighbours.hear(),
        }
        for service in self.world.plan.services:
            tasks[f"balance:{service.name}"] = balance(self.world, link, service, self._trace)
        if self.world.plan.capped:
            tasks["spill"] = spilling.spill(self.world, link)
        if self.world.config.contents:
            tasks["agents"] = self.agents.follow(link)
        if self.world.news is not None:
            tasks["news"] = news.control(self.world, link, self.world.news, self._news_trace, self._baseline)
        if (view := self.world.resources) is not None:
            if self._stages is None:
                self._stages = SwitchStages(self.world, link)
            if view.shares:
                tasks["shares"] = resources.share(self.world, link, view, self._stages)
            if view.idling:
                tasks["idle"] = resources.close(link, view, self._stages)
        return tasks

    # -- commands

    @property
    def trace_path(self) -> str | None:
        """The file that decisions are appended to."""
        return self._trace.path

    def leading(self) -> Link:
        """The switch. Raises Refused while this controller does not lead it."""
        if self.link is None:
            raise Refused(f"this controller does not lead the switch at present (it is {self.role})")
        return self.link

    async def reload(self) -> str:
        """Read the configuration file again; returns when the switch has what changed.

        Raises ConfigError, Refused, or SwitchError when the switch refuses or is lost, and changes nothing then.
        """
        link = self.leading()
        fresh = await self._fresh(link)
        order = _Reload(fresh, asyncio.get_running_loop().create_future())
        self._reloads.append(order)
        self._reload_wanted.set()
        return await order.answer

    def reads(self, path: str) -> None:
        """Raises Refused unless this is the configuration file that the controller reads."""
        own = Path(self.config_path).resolve()
        if Path(path).resolve() != own:
            there = "" if Path(path).exists() else ", and does not exist"
            raise Refused(
                f"{path} is not the file that this controller reads{there}: that is {own}. Reload that one, or start "
                "another controller with this one"
            )

    async def preview(self) -> list[str]:
        """What a reload would change in the switch, in words; changes nothing. Raises as ``reload`` does."""
        link = self.leading()
        fresh = await self._fresh(link)
        async with self._turn:
            world = deepcopy(self.world)
            reconfigure(world, fresh, asyncio.get_running_loop().time())
            return await link.preview(world.state(), self.world.plan)

    async def _fresh(self, link: Link) -> Config:
        """The configuration file as it is now, if it can be taken over."""
        fresh, old = load(self.config_path), self.world.config
        for field in ("switch", "control", "metrics", "page", "trace_file"):
            if getattr(fresh, field) != getattr(old, field):
                raise Refused(f"{field} has changed; that takes a restart of the controller (the switch goes on)")
        if fresh.news and fresh.news.trace_file != self._news_trace_file:
            raise Refused("news.trace_file has changed; that takes a restart of the controller (the switch goes on)")
        if needs_new_numbers(fresh, *self.world.present()):
            await self._look_at_pins(link)
        planned(self.world, fresh)  # what is refused holds nobody up
        return fresh

    async def _apply_reloads(self, link: Link) -> None:
        """Between two runs of the tasks, so that none of them sees a pool that changes under it."""
        time = asyncio.get_running_loop().time
        while self._reloads:
            order, old, modes = self._reloads[0], self.world.config, dict(self.world.modes)
            try:
                async with self._turn:
                    if needs_new_numbers(order.config, *self.world.present()):
                        await self._look_at_pins(link)
                    await self.agents.prepare(planned(self.world, order.config))
                    reconfigure(self.world, order.config, time())
                    self._baseline.restore(self.world)
                    updates = await link.apply(self.world.state())
            except Refused as error:
                order.failed(error)
            except SwitchError as error:
                # What a switch holds is read again then: with the old configuration, which it took.
                reconfigure(self.world, old, time())
                self.world.modes.update(modes)
                order.failed(error)
                raise
            except Exception as error:
                order.failed(error)
                raise
            else:
                order.done(f"reloaded: {updates} updates")
                self.world.events.tell(Kind.RELOAD, f"reloaded: {updates} updates", updates=updates)
                _log.info("reloaded", extra={"updates": updates})
            self._reloads.popleft()

    def _drop_reloads(self) -> None:
        for order in self._reloads:
            order.failed(Refused("the switch was lost meanwhile; reload again once it is back"))
        self._reloads.clear()

    async def drain(self, server: str, drain: bool) -> str:
        """Drain or undrain a server. Raises Refused or SwitchError, and changes nothing then."""
        await self._command(lambda now_s: set_drain(self.world, server, drain, now_s))
        text = f"{server} {'drains: no new connections, the old ones stay' if drain else 'takes connections again'}"
        self.world.events.tell(Kind.DRAIN if drain else Kind.UNDRAIN, text, server=server)
        return text

    async def left(self, server: str) -> int:
        """Open connections of a server; reads the whole connection table. Raises Refused or SwitchError."""
        link = self.leading()
        service, number = find_server(self.world, server)
        if service.is_content:
            view = self.agents.view(service, number)
            return view.report.connections if view is not None and view.report is not None else 0
        now_s = asyncio.get_running_loop().time()
        pins = pins_of(*await kept_slots(self.world, link.registers, link.clock, now_s))
        return pins.by_server.get(number, 0)

    async def set_mode(self, service: str, mode: str) -> str:
        """Change who decides a service's ratios, until the next reload. Raises Refused or SwitchError, and changes
        nothing then."""
        if mode not in list(Mode):
            raise Refused(f"no mode {mode!r}; there is: {', '.join(Mode)}")
        await self._command(lambda now_s: set_mode(self.world, service, Mode(mode), now_s))
        self.world.events.tell(Kind.MODE, f"{service} is in mode {mode}", service=service, mode=mode)
        return f"{service} is in mode {mode}"

    async def _command(self, make: Callable[[float], Change]) -> None:
        async with self._turn:
            link = self.leading()
            change = make(asyncio.get_running_loop().time())
            try:
                wrote = await link.apply(self.world.state())
            except SwitchError:
                change.undo()
                with suppress(SwitchError):
                    await link.apply(self.world.state())  # it may have taken a part
                raise
            if wrote:
                for service in change.services:
                    self.world.views[service.id].weight_changes += 1


async def _until_first(tasks: Mapping[str, Coroutine[Any, Any, None]], event: asyncio.Event) -> None:
    """Run tasks until one fails (its error is raised) or the event is set; the others are cancelled."""
    running = [asyncio.create_task(task, name=name) for name, task in tasks.items()]
    running.append(asyncio.create_task(_wait(event), name="reload"))
    try:
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    for task in done:
        task.result()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
