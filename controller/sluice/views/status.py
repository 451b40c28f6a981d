"""Gathers the data of ``sluice status`` from the controller and the switch; `statustext` renders it as text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sluice.addresses import Packed, order
from sluice.balance import Counts, Mode, ratio_of_unanswered, ratio_with_every_synack
from sluice.loops.controller import Controller
from sluice.loops.newsview import NewsView
from sluice.loops.sweep import kept_slots
from sluice.loops.trace import number
from sluice.loops.world import ServiceView
from sluice.switch.balance import available
from sluice.switch.connections import Pins, pins_of
from sluice.switch.ledger import read_columns
from sluice.switch.plan import Server, Service
from sluice.switch.secondlook import read_loads
from sluice.switch.verdict import Traffic, read_traffic

from .resources import server_status

_NOT_YET = "Not judged yet: the first window has not ended."


async def gather(controller: Controller, *, pins: bool = False) -> dict[str, Any]:
    """Return the status of controller, services and switch, read from the switch now. Raises SwitchError.

    ``pins``: also count pinned connections, which reads the whole connection table.
    """
    world, link = controller.world, controller.link
    head: dict[str, Any] = {
        "role": controller.role,
        "switch": world.config.switch.address,
        "device_id": world.config.switch.device_id,
        "reprogrammed": controller.reprogrammed,
    }
    if link is None:
        return head
    time = asyncio.get_running_loop().time
    while True:
        plan = world.plan
        traffic = await read_traffic(link.session, [service.id for service in plan.services])
        servers = [server.id for server in plan.servers]
        ledger = await read_columns(link.registers, servers)
        loads = await read_loads(link.registers, servers)
        pinned = pins_of(*await kept_slots(world, link.registers, link.clock, time())) if pins else None
        if world.news is not None:
            await world.news.count(link.registers)
        if world.plan is plan:
            break  # otherwise a reload has changed services and servers: read again
    head["services"] = [_service(controller, service, traffic, ledger, loads, pins=pinned) for service in plan.services]
    if world.news is not None:
        head["news"] = news_status(world.news)
    head["retired"] = [str(r.endpoint[0]) for r in plan.retired]
    head["neighbours_missing"] = [str(address) for address in sorted(world.neighbours.missing, key=order)]
    head["packets"] = {
        "forwarded": traffic.forwarded,
        "drops": dict(traffic.drops),
        "punts": dict(traffic.punts),
        "punts_limited": dict(traffic.punts_limited),
        "not_read": link.session.dropped_messages,
        "injected": link.session.sent_packets,
    }
    if world.table is not None:
        head["table"] = asdict(world.table)
    if pinned is not None:
        head["connections"] = {state.name.lower(): count for state, count in sorted(pinned.by_state.items())}
    return head


def _service(
    controller: Controller,
    service: Service,
    traffic: Traffic,
    ledger: Mapping[int, Mapping[str, int | None]],
    loads: Mapping[int, int],
    *,
    pins: Pins | None,
) -> dict[str, Any]:
    world = controller.world
    view = world.views[service.id]
    decision, balancer = view.decision, view.balancer
    windows = decision.windows if decision else {}
    counts, mode = traffic.services[service.id], balancer.options.mode
    names, ratios, weights = world.names(service), balancer.ratios, view.weights
    if service.is_content:
        weights = available(world.state(), service)
        total = sum(weights.values()) or 1
        ratios = {server.id: weights.get(server.id, 0) / total for server in service.servers}
    shown: dict[str, Any] = {
        "name": service.name,
        "address": f"{service.config.address}:{service.config.port}",
        "mode": str(mode),
        "condition": str(decision.diagnosis.condition) if decision else "unknown",
        "sentence": decision.diagnosis.sentence(names, acted_on=mode is Mode.PRODUCTION) if decision else _NOT_YET,
        "reason": decision.reason if decision else None,
        "weight_changes": view.weight_changes,
        **counts,
        "unpinned_share": _unpinned_share(counts),
        "refuses": view.refuses,
        "servers": [
            _server(
                server,
                view,
                ledger[server.id],
                windows,
                pins,
                ratio=ratios[server.id],
                weight=weights.get(server.id, 0),
            )
            for server in service.servers
        ],
    }
    for server, row in zip(service.servers, shown["servers"], strict=True):
        row["open"], row["max_connections"] = loads[server.id], server.max_connections
    if world.resources is not None and service.config.resources is not None:
        for server, row in zip(service.servers, shown["servers"], strict=True):
            row["resources"] = server_status(world.resources, server.id)
    if service.is_content:
        shown["content"] = _content(controller, service)
        for server, row, agent in zip(service.servers, shown["servers"], shown["content"]["agents"], strict=True):
            row["state"] = "absent" if server.id in world.absent else row["state"]
            row["open"] = agent["connections"]
    return shown


def _unpinned_share(counts: Mapping[str, int | None]) -> float | None:
    """Return the share of new connections that got no pin; None before the first."""
    pinned, unpinned = counts["pinned"] or 0, counts["unpinned_new"] or 0
    return unpinned / (pinned + unpinned) if pinned + unpinned else None


def _content(controller: Controller, service: Service) -> dict[str, Any]:
    """Return what agents report about a content service."""
    totals = controller.agents.told(service)
    agents: list[dict[str, Any]] = []
    for server in service.servers:
        view = controller.agents.view(service, server.id)
        report = view.report if view else None
        agents.append(
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
    config, unread = service.config.content, controller.world.unread
    return {
        "generation": controller.world.rules.generation,
        "without_agents": config.without_agents if config is not None and service.id in unread else None,
        "agents": agents,
        "counts": dict(totals.counts),
        "rules": dict(totals.rules) | {"(default)": totals.counts["by_default"]},
        "groups": {
            name: {
                "opened": totals.opened[name],
                "failed": totals.failed.get(name, 0),
                "servers": _ability(controller, service, name),
            }
            for name in totals.opened
        },
        "refused": dict(totals.refused),
    }


def _ability(controller: Controller, service: Service, group: str) -> dict[str, Any] | None:
    """Return what a group's servers support by their handshakes; None if agents have recently seen none."""
    group_service = controller.world.plan.service(group)
    ability = None if group_service is None else controller.agents.ability(service, group_service)
    return None if ability is None else asdict(ability)


def _server(
    server: Server,
    view: ServiceView,
    ledger: Mapping[str, int | None],
    windows: Mapping[int, Counts],
    pins: Pins | None,
    *,
    ratio: float,
    weight: int,
) -> dict[str, Any]:
    window = windows.get(server.id, Counts())
    minimum = view.balancer.options.min_syn
    shown: dict[str, Any] = {
        "name": server.name,
        "id": server.id,
        "address": f"{server.address}:{server.port}",
        "ratio": round(ratio, 6),
        "weight": weight,
        "r": number(ratio_of_unanswered(window, minimum)),
        "r_every_synack": number(ratio_with_every_synack(window, minimum)),
        "state": _state(server, view),
        **ledger,
    }
    if pins is not None:
        shown["connections"] = pins.by_server.get(server.id, 0)
    return shown


def news_status(view: NewsView) -> dict[str, Any]:
    """Return the state of flash-crowd control for JSON."""
    decision = view.decision
    shown: dict[str, Any] = {
        "mode": str(view.config.mode),
        "sentence": decision.sentence if decision else _NOT_YET,
        "cause": str(decision.verdict.cause) if decision else "unknown",
        "alarm": bool(decision and decision.detection.alarm),
        "freeze": view.freeze,
        "frozen": view.frozen,
        "hot_spot": _destination(view, decision.hot_spot) if decision else None,
        "hot_spots": [view.name(spot) for spot in decision.hot_spots] if decision else [],
        "ar_bps": decision.measurement.ar if decision else None,
        "ar_average_bps": decision.detection.ar_average if decision else None,
        "flows": decision.measurement.flows if decision else 0,
        "flow_share": view.flow_share,
        "sampling": decision.sample_share if decision else 0.0,
        "limits": [
            {
                "destination": "every destination" if target is None else view.name(target),
                "limit_per_s": round(split.limit, 3),
                "anybody_per_s": round(split.rate, 3),
                "returning_per_s": None if split.returning_rate is None else round(split.returning_rate, 3),
            }
            for target, split in view.splits.items()
        ],
        "destinations": [
            {"name": view.name(destination), **asdict(requests)}
            for destination, requests in sorted(view.requests.items())
        ],
    }
    return shown


def _destination(view: NewsView, hot_spot: Packed | None) -> str | None:
    return None if hot_spot is None else view.name(hot_spot)


def _state(server: Server, view: ServiceView) -> str:
    if view.balancer.members[server.id].draining:
        return "draining"
    if server.id in view.balancer.ejected:
        return "ejected"
    return "full" if server.id in view.full else "in"
