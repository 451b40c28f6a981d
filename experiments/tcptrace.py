"""Evaluation of a packet capture by the program tcptrace, as an independent check of other measurements."""

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
    """The results of tcptrace for a connection's direction from server to client."""

    again: int
    """Number of retransmitted segments."""
    rtt_s: float
    """Mean round-trip time in seconds."""


def traced(capture: Path, port: int) -> dict[int, Traced]:
    """Return the results for all connections to the server's port `port`, by the client's port.

    Raises SetupError if tcptrace fails.
    """
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
    """Parse the output of `tcptrace --csv -l`; return the results for connections to the server's port `port`, by the
    client's port. Pure function."""
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
