"""The part of ``sluice status`` about servers' TCP resources, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sluice.loops.resourcesview import Idling, ResourcesView
from sluice.resources.direction import SendSummary


def server_status(view: ResourcesView, server: int) -> dict[str, Any] | None:
    """Return a server's buffers and idle connections; None if they are not managed."""
    shown: dict[str, Any] = {}
    decision = view.decision
    if decision and server in decision.send:
        shown["send"] = _share(decision.send[server])
    if decision and server in decision.receive:
        summary = decision.receive[server]
        shown["receive"] = {
            "budget": round(summary.budget),
            "connections": summary.connections,
            "default_cap": summary.default,
        }
    if server in view.idling:
        shown["idle"] = _idling(view.idling[server])
    return shown or None


def _share(summary: SendSummary) -> dict[str, Any]:
    return {
        "budget": round(summary.budget),
        "flight": round(summary.flight),
        "need": round(summary.need),
        "share": round(summary.share),
        "transfers": summary.transfers,
        "capped": summary.capped,
        "default_cap": summary.default,
    }


def _idling(idling: Idling) -> dict[str, Any]:
    limit = idling.closer.limit
    return {
        "limit": None if limit is None else round(limit),
        "learned": idling.learner is not None,
        "open": idling.connections,
        "idle": idling.idle,
        "least_age_s": round(idling.closer.least_age_s, 3),
        "responses_seen": round(idling.age.responses),
        "asked": idling.asked,
        "lapsed": idling.lapsed,
        **asdict(idling.closings),
    }


def lines(name: str, shown: Mapping[str, Any]) -> list[str]:
    """Return a server's resources as lines for a terminal."""
    text: list[str] = []
    if "send" in shown:
        row = shown["send"]
        text.append(
            f"{name} send buffers: {_kib(row['budget'])}; in flight {_kib(row['flight'])}, needed "
            f"{_kib(row['need'])}, shared out {_kib(row['share'])}; {row['transfers']} transfers, "
            f"{row['capped']} of them below their need; others {_kib(row['default_cap'])} each"
        )
    if "receive" in shown:
        row = shown["receive"]
        text.append(
            f"{name} receive buffers: {_kib(row['budget'])}; {row['connections']} open connections, "
            f"{_kib(row['default_cap'])} each"
        )
    if "idle" in shown:
        row = shown["idle"]
        limit = "an unknown number" if row["limit"] is None else str(row["limit"])
        text.append(
            f"{name} connections: {row['open']} of {limit}, {row['idle']} idle for {row['least_age_s']:g} s; "
            f"closed {row['closed']} of {row['asked']} asked, {row['lapsed']} without an answer, "
            f"{row['taken_back']} taken back, {row['raced']} raced"
        )
    return text


def _kib(octets: int) -> str:
    return f"{octets / 1024:,.0f} KiB"
