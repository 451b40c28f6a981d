"""Describes a server's TCP resources in a status report, as a JSON object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sluice.resources.direction import SendSummary

from .view import Idling, ResourcesView


def server_status(view: ResourcesView, server: int) -> dict[str, Any] | None:
    """Return the state of a server's buffers and idle connections; None for a server that is not managed."""
    shown: dict[str, Any] = {}
    decision = view.decision
    if decision and server in decision.send:
        shown["send"] = _share(decision.send[server])
    if decision and server in decision.receive:
        received = decision.receive[server]
        shown["receive"] = {
            "budget": round(received.budget),
            "connections": received.connections,
            "default_cap": received.default,
        }
    if server in view.idling:
        shown["idle"] = _idling(view.idling[server])
    return shown or None


def _share(shared: SendSummary) -> dict[str, Any]:
    return {
        "budget": round(shared.budget),
        "flight": round(shared.flight),
        "need": round(shared.need),
        "share": round(shared.share),
        "transfers": shared.transfers,
        "capped": shared.capped,
        "default_cap": shared.default,
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
