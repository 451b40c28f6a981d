"""What tcptrace makes of a capture at the sender's side: a second opinion, by a program that is not ours."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from topo.testbed.errors import SetupError

MAY_TAKE_S = 120.0
COMMENT = "#"


@dataclass(frozen=True, slots=True)
class Traced:
    """A connection, in the direction from the server."""

    again: int
    """Segments sent again."""
    rtt_s: float
    """Mean round trip."""


def traced(capture: Path, port: int) -> dict[int, Traced]:
    """By the client's port, the connections of a server's port.  Raises SetupError when tcptrace fails."""
    done = subprocess.run(
        ["tcptrace", "--csv", "-l", "-r", "-n", str(capture)],
        capture_output=True,
        text=True,
        check=False,
        timeout=MAY_TAKE_S,
    )
    if done.returncode:
        raise SetupError(f"tcptrace fails on {capture}: {done.stderr.strip()}")
    return parsed(done.stdout.splitlines(), port)


def parsed(lines: Iterable[str], port: int) -> dict[int, Traced]:
    """By the client's port, what `tcptrace --csv -l` prints of a server's port.  Pure."""
    table = (line for line in lines if line.strip() and not line.startswith(COMMENT))
    traces: dict[int, Traced] = {}
    for row in csv.DictReader(table, skipinitialspace=True):
        if int(row["port_a"]) == port:
            traces[int(row["port_b"])] = _direction(row, "a2b")
        elif int(row["port_b"]) == port:
            traces[int(row["port_a"])] = _direction(row, "b2a")
    return traces


def _direction(row: Mapping[str, str], name: str) -> Traced:
    return Traced(int(row[f"rexmt_data_pkts_{name}"]), float(row[f"RTT_avg_{name}"]) / 1e3)
