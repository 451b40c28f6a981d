"""The decision trace: one JSON line per decision, for plots and for whoever asks why."""

from __future__ import annotations

import json
import math
import os
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sluice.balance import Decision
from sluice.log import logger
from sluice.switch.plan import Service

from .world import ServiceView

_log = logger("trace")


def number(value: float | None) -> float | str | None:
    """A number that JSON can carry: infinity becomes ``"inf"``; None stays None (no evidence)."""
    return "inf" if value is not None and math.isinf(value) else value


def record(service: Service, view: ServiceView, decision: Decision, *, wrote: bool) -> dict[str, Any]:
    """One decision as a mapping; per server everything it was decided from."""
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


class Appended:
    """A text file that is appended to, a whole line at a time: complete on disk when ``write`` returns.

    When its path leads to another file, or to none, for a log rotation has renamed it, the next line begins there. A
    disk that is full does not end the controller: the log says so, and that it is over. A few KB wait until then, what
    is more is lost, in whole lines.
    """

    def __init__(self, path: str | Path) -> None:
        """Opens the file at once, so that a wrong path is found at the start. Raises OSError."""
        self._path = Path(path)
        self._fails = False
        self._open()

    def _open(self) -> None:
        self._file = self._path.open("a", encoding="utf-8", buffering=1, newline="")
        self._is_new = os.fstat(self._file.fileno()).st_size == 0

    def is_new(self) -> bool:
        """Whether the next line is its file's first."""
        with suppress(OSError):
            self._follow()
        return self._is_new

    def write(self, line: str) -> None:
        """Append one line, its end included."""
        try:
            self._follow()
            self._is_new = False
            self._file.write(line)
        except OSError as error:
            if not self._fails:
                _log.error("trace cannot be written", extra={"file": str(self._path), "error": str(error)})
            self._fails = True
        else:
            if self._fails:
                _log.warning("trace is written again", extra={"file": str(self._path)})
            self._fails = False

    def _follow(self) -> None:
        """Open what the path leads to now, if that is another file. Raises OSError."""
        try:
            is_same = os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            before = self._file
            self._open()
            with suppress(OSError):
                before.close()

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()


class Trace:
    """Appends records to a file (see Appended)."""

    def __init__(self, path: str | Path | None) -> None:
        """Raises OSError for a file that cannot be opened."""
        self.path = str(path) if path else None
        self._file = Appended(path) if path else None

    def write(self, line: dict[str, Any]) -> None:
        """Append one record."""
        if self._file is not None:
            self._file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
