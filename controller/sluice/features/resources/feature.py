"""The management of servers' TCP resources as a feature, for services that configure it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sluice.loops.link import Link
from sluice.loops.world import Feature, Task, World
from sluice.switch.plan import Server, Service
from sluice.switch.reconcile import Readback
from sluice.switch.state import State

from . import status, tasks
from .stages import SwitchStages
from .view import ResourcesView, Stages


class Resources(Feature):
    """Buffers and idle connections of the servers of all services with ``resources`` in their configuration."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.view: ResourcesView | None = None
        """The state of the managed resources; None if no service has ``resources`` in its configuration."""
        self._led: tuple[Link, Stages] | None = None
        """The link to the switch that this controller last led, and the stages of this switch. They are stored here so
        that the list of idle connections, which the stages contain, survives reloads."""
        self.configure(0.0)

    # -- methods of Feature

    def configure(self, now_s: float) -> None:
        if not any(service.resources for service in self._world.config.services):
            self.view = None
        elif self.view is None:
            self.view = ResourcesView(self._world.plan)
        else:
            self.view.configure(self._world.plan)

    def adopt(self, snapshot: Readback, now_s: float) -> None:
        if self.view is not None:
            self.view.configure(self._world.plan)
            self.view.rebase(snapshot.caps)

    def tasks(self, link: Link) -> Mapping[str, Task]:
        view, begun = self.view, dict[str, Task]()
        if view is None:
            return begun
        stages = self._stages(link)
        if view.shares:
            begun["shares"] = tasks.share(self._world, link, view, stages)
        if view.idling:
            begun["idle"] = tasks.close(link, view, stages)
        return begun

    def _stages(self, link: Link) -> Stages:
        if self._led is None or self._led[0] is not link:
            self._led = link, SwitchStages(self._world, link)
        return self._led[1]

    def server_status(self, service: Service, server: Server) -> Mapping[str, Any]:
        if self.view is None or service.config.resources is None:
            return {}
        return {"resources": status.server_status(self.view, server.id)}

    def want(self, state: State) -> State:
        return state if self.view is None else replace(state, caps=self.view.caps)
