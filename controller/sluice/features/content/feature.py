"""Switching by content as a feature: agents that appear and disappear, their rules, and services without any agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sluice.loops.link import Link
from sluice.loops.world import Feature, Task, World
from sluice.switch.plan import Plan, Server, Service
from sluice.switch.reconcile import Readback
from sluice.switch.state import State

from . import status
from .agents import Agents
from .state import ContentState


class Content(Feature):
    """The agents of all content services, and the decisions about them."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.state = ContentState(world)
        self.agents = Agents(world, self.state)

    # -- methods of Feature

    def configure(self, now_s: float) -> None:
        self.state.rules = self.state.rules.following(self._world.config)
        self.state.away = self.state.away.among(self._agent_numbers())

    async def prepare(self, plan: Plan) -> None:
        await self.agents.prepare(plan)

    def adopt(self, snapshot: Readback, now_s: float) -> None:
        if snapshot.services:
            self.state.rules = (snapshot.rules or self.state.rules).following(self._world.config)
            self.state.away = replace(self.state.away, absent=snapshot.absent.intersection(self._agent_numbers()))

    def _agent_numbers(self) -> set[int]:
        return {agent.id for agent in self._world.plan.agents}

    def tasks(self, link: Link) -> Mapping[str, Task]:
        return {"agents": self.agents.follow(link)} if self._world.config.contents else {}

    def want(self, state: State) -> State:
        away = self.state.away
        return replace(
            state, absent=away.absent, leaving=away.leaving, unread=self.state.unread, rules=self.state.rules
        )

    def service_status(self, service: Service) -> Mapping[str, Any]:
        if not service.is_content:
            return {}
        return {"content": status.as_json(self._world, self.state, self.agents, service)}

    def server_status(self, service: Service, server: Server) -> Mapping[str, Any]:
        if not service.is_content:
            return {}
        view = self.agents.view(service, server.id)
        connections = view.report.connections if view is not None and view.report is not None else 0
        absent = {"state": "absent"} if server.id in self.state.away.absent else {}
        return {"open": connections, **absent}
