"""Describes a content service in a status report, as a JSON object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sluice.loops.world import World
from sluice.switch.plan import Service

from .agents import Agents
from .state import ContentState


def as_json(world: World, state: ContentState, agents: Agents, service: Service) -> dict[str, Any]:
    """Return what the agents of a content service report about the service and about themselves."""
    total = agents.total(service)
    rows: list[dict[str, Any]] = []
    for server in service.servers:
        view = agents.view(service, server.id)
        report = view.report if view else None
        rows.append(
            {
                "name": server.name,
                "control": view.control if view else None,
                "answers": report is not None,
                "error": view.error if view else "",
                "draining": bool(report and report.draining),
                "generation": report.generation if report else None,
                "uptime_s": report.uptime_s if report else None,
                "connections": report.connections if report else 0,
                "waiting": report.waiting if report else 0,
                "memory": report.memory if report else 0,
            }
        )
    config = service.config.content
    return {
        "generation": state.rules.generation,
        "without_agents": config.without_agents if config is not None and service.id in state.unread else None,
        "agents": rows,
        "counts": dict(total.counts),
        "rules": dict(total.rules) | {"(default)": total.counts["by_default"]},
        "groups": {
            name: {
                "opened": total.opened[name],
                "failed": total.failed.get(name, 0),
                "servers": _ability(world, agents, service, name),
            }
            for name in total.opened
        },
        "refused": dict(total.refused),
    }


def _ability(world: World, agents: Agents, service: Service, group: str) -> dict[str, Any] | None:
    """Return the TCP options that all servers of a group support; None if agents have seen no SYN-ACK recently."""
    of = world.plan.service(group)
    ability = None if of is None else agents.ability(service, of)
    return None if ability is None else asdict(ability)
