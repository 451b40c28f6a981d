"""Flash-crowd control as a feature: one control for all destinations behind the switch, if it is configured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sluice.config.model import Config
from sluice.loops.link import Link
from sluice.loops.world import Feature, Task, World
from sluice.switch.reconcile import Readback
from sluice.switch.registers import Registers
from sluice.switch.state import State

from . import status
from .baseline import BaselineFile
from .control import control
from .trace import NewsTrace
from .view import NewsView


class CrowdControl(Feature):
    """Flash-crowd control, its trace, and the file with its baselines."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.view: NewsView | None = None
        """The control's state; None if it is not configured."""
        self.trace = NewsTrace(None)
        """The trace to which decisions are appended."""
        self.baseline: BaselineFile | None = None
        """The file in which baselines are saved for the next controller; None: they are not saved."""
        self._trace_file = world.config.news.trace_file if world.config.news else None
        """Path of the trace file as configured at the start. No other file is opened later."""
        self.configure(0.0)

    # -- methods of Feature

    def restart_keys(self, fresh: Config) -> Iterable[str]:
        if fresh.news and fresh.news.trace_file != self._trace_file:
            yield "news.trace_file"

    def configure(self, now_s: float) -> None:
        config, plan = self._world.config.news, self._world.plan
        if config is None:
            self.view = None
        elif self.view is None:
            self.view = NewsView(config, plan)
        else:
            self.view.configure(config, plan)
        self._restore()

    def adopt(self, snapshot: Readback, now_s: float) -> None:
        if self.view is None:
            return
        if self.baseline is not None:
            self.baseline.expire(self.view)
        self._restore()
        self.view.configure(self.view.config, self._world.plan)
        self.view.adopt(snapshot)

    def _restore(self) -> None:
        if self.view is not None and self.baseline is not None:
            self.baseline.restore(self.view)

    def tasks(self, link: Link) -> Mapping[str, Task]:
        if self.view is None:
            return {}
        return {"news": control(self._world, link, self.view, self.trace, self.baseline)}

    def stand_by(self) -> None:
        if self.view is not None:
            self.view.stand_by()

    def want(self, state: State) -> State:
        return state if self.view is None else replace(state, crowd=self.view.wanted())

    def holds(self, service: int) -> bool:
        return self.view is not None and self.view.freezes(service)

    async def read(self, registers: Registers) -> None:
        if self.view is not None:
            await self.view.count(registers)

    def status(self) -> Mapping[str, Any]:
        return {} if self.view is None else {"news": status.as_json(self.view)}

    def verdict_turn(self, now_s: float) -> tuple[float, float] | None:
        return None if self.view is None else (self.view.begin(now_s), self.view.config.interval_s)
