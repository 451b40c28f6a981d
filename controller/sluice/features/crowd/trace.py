"""The trace of flash-crowd control: a line of comma-separated values per decision."""

from __future__ import annotations

import csv
import math
import time
from collections import deque
from pathlib import Path

from sluice.loops.appended import Appended
from sluice.news import Decision

from .view import NewsView

_NOTED = 64
"""The maximum number of readings whose times are stored for the next row. The bound is needed because no row is written
while every reading is late."""


class NewsTrace:
    """Appends rows to a file, which log rotation may rename. The first line of a file names the columns."""

    def __init__(self, path: str | Path | None) -> None:
        """Open the file. Raises OSError if it cannot be opened. Without a path, the trace writes nothing."""
        self._file = Appended(path) if path else None
        self._late, self._bases = deque[float](maxlen=_NOTED), deque[float](maxlen=_NOTED)

    def __deepcopy__(self, memo: object) -> NewsTrace:
        """Return a trace without a file: a copied world only serves to try a configuration."""
        return NewsTrace(None)

    def note(self, *, late: bool, base: bool) -> None:
        """Record the time of a reading that ends now, for the next row. `sluice replay` uses it to repeat the same
        steps.

        ``late``: flash-crowd control restarted its measurements with this reading. ``base``: the reading ended an
        interval without a decision, and is the base of the next interval's counts.
        """
        now_s = round(time.time(), 3)
        if late:
            self._late.append(now_s)
        if base:
            self._bases.append(now_s)

    def write(self, view: NewsView, decision: Decision, *, wrote: bool) -> None:
        """Append one decision: its Unix time, ``Decision.row()``, and the two token buckets of its limit."""
        if self._file is None:
            return
        split = view.splits.get(decision.target_is) or next(iter(view.splits.values()), None)
        second = None if split is None else split.returning_rate
        row: dict[str, float | int | str] = {
            "unix_s": round(time.time(), 3),
            "mode": str(view.config.mode),
            **{key: _short(value) for key, value in decision.row().items()},
            "servers": " ".join(map(view.server_name, decision.verdict.servers)),
            "target_offered_per_s": _short(decision.target.offered / decision.target_s),
            "target_admitted_per_s": _short(decision.target.admitted / decision.target_s),
            "target_refused_per_s": _short(decision.target.refused / decision.target_s),
            "target_returning_per_s": _short(decision.target.returning / decision.target_s),
            "anybody_per_s": math.nan if split is None else _short(split.rate),
            "returning_per_s": math.nan if second is None else _short(second),
            "late_unix_s": " ".join(map(str, self._late)),
            "base_unix_s": " ".join(map(str, self._bases)),
            "wrote": int(wrote),
        }
        self._late.clear()
        self._bases.clear()
        out = csv.writer(self._file)
        if self._file.is_new():
            out.writerow(row)
        out.writerow(row.values())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _short(value: float | int | str) -> float | int | str:
    return round(value, 4) if isinstance(value, float) else value
