"""Reads from the decision trace the weights by which servers were selected for new connections at an earlier time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

_BACK = 4096
"""The most lines that a search reads backwards from a time, lines of other services included. The search reads at most
256 times as many bytes, so it reads fewer lines if they are longer than 256 bytes on average."""


def weights_at(path: str | Path, service: str, unix_s: float) -> tuple[float, dict[str, int]] | None:
    """Return the last decision on a service up to a time, as its Unix time and its weights by server name.

    Returns None if the lines before that time, as far back as the search reads (see _BACK), have no such decision.
    Raises OSError. The lines are in the order of time, so the search for the time is binary.
    """
    with Path(path).open("rb") as file:
        end = _until(file, unix_s)
        for line in _backwards(file, end):
            record = _parsed(line)
            if record is not None and record.get("service") == service and record["time"] <= unix_s:
                weights = {name: int(server["weight"]) for name, server in record["servers"].items()}
                return float(record["time"]), weights
    return None


def _until(file: BinaryIO, unix_s: float) -> int:
    """Return an offset that follows all lines up to a time, and at most two later lines."""
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
    """Return at most _BACK lines, of at most 256 * _BACK bytes together, before an offset; the last line is first."""
    size = min(end, _BACK * 256)
    file.seek(end - size)
    return list(reversed(file.read(size).splitlines()[-_BACK:]))


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line; None for an incomplete line."""
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("time"), float | int) else None
