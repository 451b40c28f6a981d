"""The decision trace: one JSON line per decision, which plots and `sluice explain` read."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sluice.balance import Decision
from sluice.loops.appended import Appended
from sluice.switch.plan import Service

from .service import ServiceView


def number(value: float | None) -> float | str | None:
    """Return a number in a form that JSON can represent: infinity becomes ``"inf"``. None, which means no evidence,
    stays None."""
    return "inf" if value is not None and math.isinf(value) else value


def record(service: Service, view: ServiceView, decision: Decision, *, wrote: bool) -> dict[str, Any]:
    """Return a decision as a JSON object, with each server's measurements, on which the decision is based."""
    members, weights = view.balancer.members, view.weights
    return {
        "time": round(time.time(), 3),
        "service": service.name,
        "mode": str(view.balancer.options.mode),
        "period_s": view.balancer.options.period_s,
        "window_s": view.balancer.options.window_s,
        "condition": str(decision.diagnosis.condition),
        "reason": decision.reason,
        "wrote": wrote,
        "weight_changes": view.weight_changes,
        "servers": {
            server.name: {
                "id": server.id,
                "interval": asdict(decision.differences[server.id]),
                "window": asdict(decision.windows[server.id]),
                "r": number(decision.r[server.id]),
                "r_every_synack": number(decision.r_every_synack[server.id]),
                "work": asdict(decision.work[server.id]) if server.id in decision.work else None,
                "ratio": round(decision.ratios[server.id], 6),
                "weight": weights.get(server.id, 0),
                "ejected": server.id in decision.ejected,
                "full": server.id in view.full,
                "draining": members[server.id].draining,
            }
            for server in service.servers
        },
    }


class Trace:
    """Appends records as lines to a file, which log rotation may rename."""

    def __init__(self, path: str | Path | None) -> None:
        """Open the file. Raises OSError if it cannot be opened. Without a path, the trace writes nothing."""
        self.path = str(path) if path else None
        self._file = Appended(path) if path else None

    def __deepcopy__(self, memo: object) -> Trace:
        """Return a trace without a file: a copied world only serves to try a configuration."""
        return Trace(None)

    def write(self, line: dict[str, Any]) -> None:
        """Append one record."""
        if self._file is not None:
            self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
