"""What the decision trace says of an earlier time: the weights that new connections were drawn by then."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

_BACK = 4096
"""So many lines are read back from a time, at most: those of other services are among them."""


def weights_at(path: str | Path, service: str, unix_s: float) -> tuple[float, dict[str, int]] | None:
    """The last decision on a service until then: its time and its weights by server; None when the trace has none.

    Raises OSError. The file is searched by halves: lines are in the order of time.
    """
    with Path(path).open("rb") as file:
        end = _until(file, unix_s)
        for line in _backwards(file, end):
            record = _parsed(line)
            if record is not None and record.get("service") == service and record["time"] <= unix_s:
                weights = {name: int(one["weight"]) for name, one in record["servers"].items()}
                return float(record["time"]), weights
    return None


def _until(file: BinaryIO, unix_s: float) -> int:
    """Where the first line of a later time begins, or a line or two behind it."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > 1:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()
        record = _parsed(file.readline())
        if record is None or record["time"] > unix_s:
            high = middle
        else:
            low = middle
    file.seek(high)
    file.readline()
    file.readline()
    return file.tell()


def _backwards(file: BinaryIO, end: int) -> list[bytes]:
    """The lines before a place, the last one first."""
    size = min(end, _BACK * 256)
    file.seek(end - size)
    return list(reversed(file.read(size).splitlines()[-_BACK:]))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A record; None for a line that was cut short."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("time"), float | int) else None
