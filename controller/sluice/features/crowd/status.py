"""Describes flash-crowd control in a status report, as a JSON object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sluice.features.balance.service import NOT_JUDGED

from .view import NewsView


def as_json(view: NewsView) -> dict[str, Any]:
    """Return the last decision and the counts of all destinations."""
    decision = view.decision
    return {
        "mode": str(view.config.mode),
        "sentence": decision.sentence if decision else NOT_JUDGED,
        "cause": str(decision.verdict.cause) if decision else "unknown",
        "alarm": bool(decision and decision.detection.alarm),
        "freeze": view.freeze,
        "frozen": view.frozen,
        "hot_spot": view.name(decision.hot_spot) if decision and decision.hot_spot is not None else None,
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
