"""Gathers the data of ``sluice status`` from the controller and the switch; `statustext` renders it as text."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sluice.addresses import order
from sluice.balance import Counts, ratio_of_unanswered, ratio_with_every_synack
from sluice.controller import Controller
from sluice.features import Balance
from sluice.features.balance.service import NOT_JUDGED, ServiceView
from sluice.features.balance.trace import number
from sluice.loops.sweep import kept_slots
from sluice.switch.balance import available
from sluice.switch.connections import Pins, pins_of
from sluice.switch.ledger import read_columns
from sluice.switch.plan import Server, Service
from sluice.switch.secondlook import read_loads
from sluice.switch.verdict import Traffic, read_traffic


async def gather(controller: Controller, *, pins: bool = False) -> dict[str, Any]:
    """Return the status of controller, services and switch; the switch is read during the call. While the controller is
    not primary, return only the controller's status. Raises SwitchError.

    ``pins``: count pinned connections, too, which requires reading the complete connection table.
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
        for feature in world.features:
            await feature.read(link.registers)
        if world.plan is plan:
            break  # otherwise a reload has changed services or servers: read again
    head["services"] = [_service(controller, service, traffic, ledger, loads, pins=pinned) for service in plan.services]
    for feature in world.features:
        head |= feature.status()
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
    view = world[Balance].views[service.id]
    decision, balancer = view.decision, view.balancer
    windows = decision.windows if decision else {}
    counts, acted_on = traffic.services[service.id], balancer.policy.ejects
    names, ratios, weights = world.names(service), balancer.ratios, view.weights
    if service.is_content:
        weights = available(world.state(), service)
        total = sum(weights.values()) or 1
        ratios = {server.id: weights.get(server.id, 0) / total for server in service.servers}
    shown: dict[str, Any] = {
        "name": service.name,
        "address": f"{service.config.address}:{service.config.port}",
        "mode": str(balancer.options.mode),
        "condition": str(decision.diagnosis.condition) if decision else "unknown",
        "sentence": decision.diagnosis.sentence(names, acted_on=acted_on) if decision else NOT_JUDGED,
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
        row.update(open=loads[server.id], max_connections=server.max_connections)
        for feature in world.features:
            row.update(feature.server_status(service, server))
    for feature in world.features:
        shown |= feature.service_status(service)
    return shown


def _unpinned_share(counts: Mapping[str, int | None]) -> float | None:
    """Return the share of new connections that got no pin (no entry in the connection table); None before the first
    connection."""
    pinned, unpinned = counts["pinned"] or 0, counts["unpinned_new"] or 0
    return unpinned / (pinned + unpinned) if pinned + unpinned else None


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


def _state(server: Server, view: ServiceView) -> str:
    if view.balancer.members[server.id].draining:
        return "draining"
    if server.id in view.balancer.ejected:
        return "ejected"
    return "full" if server.id in view.full else "in"
