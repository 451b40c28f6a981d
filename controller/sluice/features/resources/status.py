"""A server's TCP resources in a status, as JSON has them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sluice.resources.direction import Told

from .view import Idling, ResourcesView


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
