"""What ``sluice status`` shows of servers' TCP resources, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sluice.loops.resourcesview import Idling, ResourcesView
from sluice.resources.direction import Told


def server_status(view: ResourcesView, server: int) -> dict[str, Any] | None:
    """A server's buffers and idle connections; None for one that is not managed."""
    shown: dict[str, Any] = {}
    decision = view.decision
    if decision and server in decision.send:
        shown["send"] = _share(decision.send[server])
    if decision and server in decision.receive:
        told = decision.receive[server]
        shown["receive"] = {
            "budget": round(told.budget),
            "connections": told.connections,
            "default_cap": told.default,
        }
    if server in view.idling:
        shown["idle"] = _idling(view.idling[server])
    return shown or None


def _share(told: Told) -> dict[str, Any]:
    return {
        "budget": round(told.budget),
        "flight": round(told.flight),
        "need": round(told.need),
        "share": round(told.share),
        "transfers": told.transfers,
        "capped": told.capped,
        "default_cap": told.default,
    }


def _idling(one: Idling) -> dict[str, Any]:
    limit = one.closer.limit
    return {
        "limit": None if limit is None else round(limit),
        "learned": one.learner is not None,
        "open": one.connections,
        "idle": one.idle,
        "least_age_s": round(one.closer.least_age_s, 3),
        "responses_seen": round(one.age.responses),
        "asked": one.asked,
        "lapsed": one.lapsed,
        **asdict(one.closings),
    }


def lines(name: str, shown: Mapping[str, Any]) -> list[str]:
    """A server's for a terminal."""
    text: list[str] = []
    if "send" in shown:
        one = shown["send"]
        text.append(
            f"{name} send buffers: {_kib(one['budget'])}; in flight {_kib(one['flight'])}, needed "
            f"{_kib(one['need'])}, shared out {_kib(one['share'])}; {one['transfers']} transfers, "
            f"{one['capped']} of them below their need; others {_kib(one['default_cap'])} each"
        )
    if "receive" in shown:
        one = shown["receive"]
        text.append(
            f"{name} receive buffers: {_kib(one['budget'])}; {one['connections']} open connections, "
            f"{_kib(one['default_cap'])} each"
        )
    if "idle" in shown:
        one = shown["idle"]
        limit = "an unknown number" if one["limit"] is None else str(one["limit"])
        text.append(
            f"{name} connections: {one['open']} of {limit}, {one['idle']} idle for {one['least_age_s']:g} s; "
            f"closed {one['closed']} of {one['asked']} asked, {one['lapsed']} without an answer, "
            f"{one['taken_back']} taken back, {one['raced']} raced"
        )
    return text


def _kib(octets: int) -> str:
    return f"{octets / 1024:,.0f} KiB"
