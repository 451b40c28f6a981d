"""Arguments and output of `first_byte` (agent/examples), the load generator of the experiments on content
switching."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topo.plan.statistics import percentile
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError

EXAMPLES = REPOSITORY / "target/release/examples"


@dataclass(frozen=True, slots=True)
class Requests:
    """A load of new connections with one request each; a rate of 0 means full speed, with 16 connections open."""

    paths: Sequence[str]
    rate_per_s: float
    seconds: float
    body_bytes: int = 0
    """Bytes of the XML document that each request posts; 0: requests are GETs."""


def example(name: str) -> str:
    """Return the path of an example program of the Rust crates.

    Raises SetupError, whose message states the remedy, if the program is not built.
    """
    path = EXAMPLES / name
    if not path.is_file():
        raise SetupError(f"{path} is not there: cargo build --release --examples, or make experiments")
    return str(path)


def command(address: str, port: int, asked: Requests) -> list[str]:
    """Return the command line of the load generator."""
    numbers = (asked.body_bytes, asked.rate_per_s, asked.seconds)
    return [example("first_byte"), f"{address}:{port}", ",".join(asked.paths), *map(str, numbers)]


def read(output: str, least_bytes: int) -> dict[str, Any]:
    """Parse the load generator's output into the figures of a run.

    Raises SetupError if the output is not as expected, or if an answer was shorter than the page.
    """
    lines = output.splitlines()
    failed = re.fullmatch(r"failed (\d+): (.*)", lines[-2]) if len(lines) > 1 else None
    late = re.fullmatch(r"late (\d+)", lines[-1]) if lines else None
    if failed is None or late is None:
        raise SetupError(f"first_byte says something else than it should:\n{output[-1000:]}")
    answers = [[int(word) for word in line.split()] for line in lines[:-2]]
    if short := [size for _, _, size in answers if size < least_bytes]:
        raise SetupError(f"{len(short)} answers were shorter than the page of {least_bytes} bytes: one had {short[0]}")
    return {
        "answered": len(answers),
        "failed": int(failed[1]),
        "why": failed[2],
        "late_ms": int(late[1]) / 1e3,
        "first": _times([first for first, _, _ in answers]),
        "whole": _times([last for _, last, _ in answers]),
    }


def _times(microseconds: Sequence[int]) -> dict[str, float]:
    return {
        "mean_ms": statistics.fmean(microseconds) / 1e3 if microseconds else float("nan"),
        "p50_ms": percentile(microseconds, 0.5) / 1e3,
        "p99_ms": percentile(microseconds, 0.99) / 1e3,
    }
