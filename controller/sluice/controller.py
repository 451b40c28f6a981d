"""The controller's life cycle: it connects to the switch, becomes primary, adopts the switch's state, and runs the
tasks. When the session ends with an error, the controller starts over."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from sluice.balance import Mode
from sluice.config.load import load
from sluice.config.model import Config
from sluice.features import Balance, Content, CrowdControl, world_of
from sluice.features.balance.feature import Change
from sluice.features.balance.trace import Trace
from sluice.features.crowd.baseline import BaselineFile
from sluice.features.crowd.trace import NewsTrace
from sluice.log import logger, switch_name
from sluice.loops.adoption import adopt
from sluice.loops.commands import Refused, find_server, planned, reconfigure
from sluice.loops.events import Kind
from sluice.loops.link import Link
from sluice.loops.neighbours import Neighbours
from sluice.loops.sweep import kept_slots, sweep
from sluice.loops.world import Task
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

_log = logger("controller")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


@dataclass(frozen=True, slots=True)
class _Reload:
    """A requested reload. The command that requested it may have been cancelled before the answer."""

    config: Config
    answer: asyncio.Future[str]

    def done(self, text: str) -> None:
        if not self.answer.done():
            self.answer.set_result(text)

    def failed(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Controller:
    """Controls one switch according to one configuration.

    ``announce`` is called with the lines that scripts and systemd wait for (ready, standby), and ``status`` with all
    other status lines.
    """

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
        self.world = world_of(config)
        self.config_path = config_path
        self._balance = self.world[Balance]
        self._balance.trace = trace
        crowd = self.world[CrowdControl]
        crowd.trace, crowd.baseline = news_trace or NewsTrace(None), BaselineFile()
        self.link: Link | None = None
        """The connection to the switch while this controller is primary; None otherwise."""
        self.role = "connecting"
        self.reprogrammed = 0
        """The number of times that the switch had lost its program since this controller first became primary."""
        self._led = False
        self._announce, self._status = announce, status
        self._target = target
        self._may_end_connections = may_end_connections
        """Whether the program may be loaded into the switch although loading ends all connections."""
        self._pipeline: Pipeline | None = None
        """The compiled program; None until the kind of switch is known."""
        self._reload_wanted = asyncio.Event()
        self._reloads: deque[_Reload] = deque()
        """The reload in progress, followed by those that wait."""
        self._turn = asyncio.Lock()
        """Held by one command or reload at a time. So a command or reload can be undone if the switch refuses its
        writes, because no other one has changed the state meanwhile."""

    async def run(self) -> None:
        """Control the switch. Never returns. Raises SwitchError if the switch answers, but refuses what this controller
        needs in order to lead it for the first time, such as the program. Later refusals lead to new attempts."""
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
                        for feature in self.world.features:
                            feature.stand_by()
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
        self.world.events.report(Kind.LINK, text, switch=self.world.config.switch.address, up=False)

    async def _lead(self, session: Session) -> None:
        program = await ensure_program(session, may_end_connections=self._may_end_connections)
        await subscribe(session)
        snapshot = await read_back(session)
        registers = await open_registers(session, self.world.config.switch.thrift)
        link = Link(session, registers, snapshot, asyncio.get_running_loop().time())
        try:
            if snapshot.services and needs_new_numbers(self.world.config, snapshot.services, snapshot.origins.values()):
                await self._read_pinned(link)
            adopt(self.world, snapshot, asyncio.get_running_loop().time())
            for feature in self.world.features:
                await feature.begin(link)
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
            self.link = None
            self._drop_reloads()
            await registers.close()

    async def _read_pinned(self, link: Link) -> None:
        """Read from the connection table which servers have pins (entries of connections). Such a server must keep its
        address, and its number may not be given to another server."""
        now_s = asyncio.get_running_loop().time()
        self.world.pinned = pins_of(*await kept_slots(self.world, link.registers, link.clock, now_s)).pinned

    def _announce_ready(self, program: Program, updates: int) -> None:
        at, plan = self.world.config.switch, self.world.plan
        text = f"leads the switch; {program.value}, {updates} updates"
        self.world.events.report(Kind.LINK, text, switch=at.address, up=True, adopted=program.adopted, updates=updates)
        self._announce(
            f"sluice: ready switch={at.address} device={at.device_id} services={len(plan.services)} "
            f"servers={len(list(plan.servers))} adopted={'yes' if program.adopted else 'no'} updates={updates}"
        )

    def _tasks(self, session: Session, link: Link) -> Mapping[str, Task]:
        neighbours = Neighbours(self.world, link)
        tasks: dict[str, Task] = {
            "session": session.until_ended(),
            "arp": neighbours.ask(),
            "packets": neighbours.listen(),
            "sweep": sweep(self.world, link),
            "neighbours": neighbours.learn(),
        }
        for feature in self.world.features:
            tasks |= feature.tasks(link)
        return tasks

    # -- commands

    @property
    def trace_path(self) -> str | None:
        """Path of the file with the trace of balancing decisions; None if no trace is written."""
        return self._balance.trace.path

    def leading(self) -> Link:
        """Return the link to the switch. Raises Refused while this controller is not primary."""
        if self.link is None:
            raise Refused(f"this controller does not lead the switch at present (it is {self.role})")
        return self.link

    async def reload(self) -> str:
        """Read the configuration file again. Returns a message once the changes are in the switch.

        Raises ConfigError, Refused, or SwitchError when the switch refuses a write or is lost. After an error the old
        configuration stays in force.
        """
        link = self.leading()
        fresh = await self._fresh(link)
        order = _Reload(fresh, asyncio.get_running_loop().create_future())
        self._reloads.append(order)
        self._reload_wanted.set()
        return await order.answer

    def reads(self, path: str) -> None:
        """Check that a path is that of the controller's configuration file. Raises Refused if it is another file."""
        own = Path(self.config_path).resolve()
        if Path(path).resolve() != own:
            there = "" if Path(path).exists() else ", and does not exist"
            raise Refused(
                f"{path} is not the file that this controller reads{there}: that is {own}. Reload that one, or start "
                "another controller with this one"
            )

    async def preview(self) -> list[str]:
        """Describe in words what a reload would change in the switch. Changes nothing. Raises the same errors as
        ``reload``."""
        link = self.leading()
        fresh = await self._fresh(link)
        async with self._turn:
            world = deepcopy(self.world)
            reconfigure(world, fresh, asyncio.get_running_loop().time())
            return await link.preview(world.state(), self.world.plan)

    async def _fresh(self, link: Link) -> Config:
        """Return the configuration file's present content if a reload can apply it. Raises the same errors as
        ``reload``."""
        fresh, old = load(self.config_path), self.world.config
        changed = [key for key in ("switch", "control", "metrics", "page") if getattr(fresh, key) != getattr(old, key)]
        changed += [key for feature in self.world.features for key in feature.restart_keys(fresh)]
        if changed:
            raise Refused(f"{changed[0]} has changed; that takes a restart of the controller (the switch goes on)")
        if needs_new_numbers(fresh, *self.world.present()):
            await self._read_pinned(link)
        planned(self.world, fresh)  # raises Refused before the tasks are stopped
        return fresh

    async def _apply_reloads(self, link: Link) -> None:
        """Apply the waiting reloads. The tasks are stopped meanwhile, so that the set of servers does not change while
        they run."""
        time = asyncio.get_running_loop().time
        while self._reloads:
            order, old, modes = self._reloads[0], self.world.config, dict(self._balance.modes)
            try:
                async with self._turn:
                    if needs_new_numbers(order.config, *self.world.present()):
                        await self._read_pinned(link)
                    plan = planned(self.world, order.config)
                    for feature in self.world.features:
                        await feature.prepare(plan)
                    reconfigure(self.world, order.config, time())
                    updates = await link.apply(self.world.state())
            except Refused as error:
                order.failed(error)
            except SwitchError as error:
                # The session starts over and adopts the switch by the old configuration, because this is the one that
                # the switch has accepted.
                reconfigure(self.world, old, time())
                self._balance.modes.update(modes)
                order.failed(error)
                raise
            except Exception as error:
                order.failed(error)
                raise
            else:
                order.done(f"reloaded: {updates} updates")
                self.world.events.report(Kind.RELOAD, f"reloaded: {updates} updates", updates=updates)
                _log.info("reloaded", extra={"updates": updates})
            self._reloads.popleft()

    def _drop_reloads(self) -> None:
        for order in self._reloads:
            order.failed(Refused("the switch was lost meanwhile; reload again once it is back"))
        self._reloads.clear()

    async def drain(self, server: str, drain: bool) -> str:
        """Drain or undrain a server. Raises Refused or SwitchError, and then changes nothing."""
        await self._command(lambda now_s: self._balance.set_drain(server, drain, now_s))
        text = f"{server} {'drains: no new connections, the old ones stay' if drain else 'takes connections again'}"
        self.world.events.report(Kind.DRAIN if drain else Kind.UNDRAIN, text, server=server)
        return text

    async def left(self, server: str) -> int:
        """Return a server's number of open connections, counted in the whole connection table; for an agent, the number
        in its last report (0 if there is none). Raises Refused or SwitchError."""
        link = self.leading()
        service, number = find_server(self.world, server)
        if service.is_content:
            view = self.world[Content].agents.view(service, number)
            return view.report.connections if view is not None and view.report is not None else 0
        now_s = asyncio.get_running_loop().time()
        pins = pins_of(*await kept_slots(self.world, link.registers, link.clock, now_s))
        return pins.by_server.get(number, 0)

    async def set_mode(self, service: str, mode: str) -> str:
        """Change the mode of a service until the next reload. Raises Refused or SwitchError, and then changes
        nothing."""
        if mode not in list(Mode):
            raise Refused(f"no mode {mode!r}; there is: {', '.join(Mode)}")
        await self._command(lambda now_s: self._balance.set_mode(service, Mode(mode), now_s))
        self.world.events.report(Kind.MODE, f"{service} is in mode {mode}", service=service, mode=mode)
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
                    await link.apply(self.world.state())  # the switch may have accepted part of the refused write
                raise
            if wrote:
                for service in change.services:
                    self._balance.views[service.id].weight_changes += 1


async def _until_first(tasks: Mapping[str, Task], event: asyncio.Event) -> None:
    """Run tasks until one fails or the event is set, then cancel those that still run. Raises the failed task's
    error."""
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
