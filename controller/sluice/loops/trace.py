"""The decision trace: one JSON line per decision, for plots and for whoever asks why."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sluice.balance import Decision
from sluice.switch.plan import Service

from .world import ServiceView


def number(value: float | None) -> float | str | None:
    """A number that JSON can carry: infinity becomes ``"inf"``; None stays None (no evidence)."""
    return "inf" if value is not None and math.isinf(value) else value


def record(service: Service, view: ServiceView, decision: Decision, *, wrote: bool) -> dict[str, Any]:
    """One decision as a mapping; per server everything it was decided from."""
    members = view.balancer.members
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
                "weight": decision.weights.get(server.id, 0),
                "ejected": server.id in decision.ejected,
                "draining": members[server.id].draining,
            }
            for server in service.servers
        },
    }


class Trace:
    """Appends records to a file; each is complete on disk when ``write`` returns."""

    def __init__(self, path: str | Path | None) -> None:
        """Opens the file at once, so that a wrong path is found at the start. Raises OSError."""
        self._file = Path(path).open("a", encoding="utf-8", buffering=1) if path else None  # noqa: SIM115

    def write(self, line: dict[str, Any]) -> None:
        """Append one record."""
        if self._file is not None:
            self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
