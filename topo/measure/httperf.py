"""Load by httperf: connections at exponential intervals, and httperf's report on the connections."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from topo.plan.load import Load
from topo.testbed.errors import SetupError
from topo.testbed.processes import Process

NICENESS = 5
"""Niceness of httperf, which never sleeps: on machines with few cores, switch and servers have priority over it. The
value is absolute, i.e. not added to the lab's own niceness."""


@dataclass(frozen=True, slots=True)
class HttperfResult:
    """httperf's counts; times in milliseconds or seconds, by the suffix of the field's name."""

    connections: int
    replies: int
    duration_s: float
    connect_ms: float
    timeouts: int
    resets: int
    refused: int
    unavailable: int
    """Connections that httperf could not open on its own host, for lack of a file descriptor, an address or a table
    entry."""


def httperf_command(load: Load, address: str, port: int, path: str | Path, share: int, *, processes: int) -> list[str]:
    """Return the command line of httperf process number `share` of `processes` equal ones, which together generate
    `load`.

    `path`: the requested path, or a file with the paths that httperf requests in turn (`write_paths`).
    """
    return [
        "nice",
        "-n",
        str(NICENESS - os.getpriority(os.PRIO_PROCESS, 0)),
        "httperf",
        f"--client={share}/{processes}",
        f"--server={address}",
        f"--port={port}",
        f"--uri=/{path}" if isinstance(path, str) else f"--wlog=y,{path}",
        f"--period=e{processes / load.rate_per_s:.6f}",
        f"--num-conns={math.ceil(load.connections / processes)}",
        "--num-calls=1",
        f"--timeout={load.timeout_s:g}",
    ]


def write_paths(file: Path, paths: Sequence[str]) -> Path:
    """Write the paths that httperf requests in turn, each followed by a zero byte; return the file."""
    file.write_bytes(b"".join(f"/{path}".encode() + b"\0" for path in paths))
    return file


def share_of(paths: Sequence[str], share: int, processes: int) -> Sequence[str]:
    """Return the paths that process number `share` of `processes` requests: its share, so that all processes together
    request each path as often as `paths` contains it. If there are fewer paths than processes, a process without a
    share requests all paths."""
    return paths[share::processes] or paths


def _number(text: str, pattern: str) -> float:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise SetupError(f"httperf's output has no line like {pattern!r}:\n{text[-1500:]}")
    return float(match.group(1))


def parse_httperf(text: str) -> HttperfResult:
    """Parse httperf's report; raise SetupError if a line is missing."""
    return HttperfResult(
        connections=int(_number(text, r"^Total: connections (\d+)")),
        replies=int(_number(text, r"^Total: .*replies (\d+)")),
        duration_s=_number(text, r"^Total: .*test-duration ([\d.]+) s"),
        connect_ms=_number(text, r"^Connection time \[ms\]: connect ([\d.]+)"),
        timeouts=int(_number(text, r"^Errors: .*client-timo (\d+)")),
        resets=int(_number(text, r"^Errors: .*connreset (\d+)")),
        refused=int(_number(text, r"^Errors: .*connrefused (\d+)")),
        unavailable=sum(
            int(_number(text, rf"^Errors: .*{kind} (\d+)"))
            for kind in ("fd-unavail", "addrunavail", "ftab-full", "other")
        ),
    )


def combine(results: Sequence[HttperfResult]) -> HttperfResult:
    """Combine the reports of processes that ran at the same time: counts are added, mean connect times are weighted by
    the number of connections, and the duration is the longest."""
    connections = sum(result.connections for result in results)
    weighted = sum(result.connect_ms * result.connections for result in results)
    return HttperfResult(
        connections=connections,
        replies=sum(result.replies for result in results),
        duration_s=max(result.duration_s for result in results),
        connect_ms=weighted / connections if connections else 0.0,
        timeouts=sum(result.timeouts for result in results),
        resets=sum(result.resets for result in results),
        refused=sum(result.refused for result in results),
        unavailable=sum(result.unavailable for result in results),
    )


class Httperf:
    """The running httperf processes of one load."""

    def __init__(
        self,
        load: Load,
        *,
        address: str,
        port: int,
        paths: Sequence[str],
        namespace_pid: int,
        directory: Path,
        name: str,
    ) -> None:
        """Start the processes. Several paths are distributed over the processes; each process requests its paths
        repeatedly."""
        count = load.processes(len(os.sched_getaffinity(0)))
        self._limit_s = load.seconds + load.timeout_s + 20.0
        self._processes: list[Process] = []
        try:
            for share in range(count):
                own = share_of(paths, share, count)
                path = own[0] if len(own) == 1 else write_paths(directory / f"httperf-{name}-{share}.paths", own)
                self._processes.append(
                    Process(
                        "httperf",
                        httperf_command(load, address, port, path, share, processes=count),
                        log=directory / f"httperf-{name}-{share}.out",
                        namespace_pid=namespace_pid,
                    )
                )
        except BaseException:
            self.stop()
            raise

    def running(self) -> bool:
        """Return whether any process still runs."""
        return any(process.exit_code() is None for process in self._processes)

    def result(self) -> HttperfResult:
        """Wait for the end and return the combined report; raise SetupError if a process failed."""
        for process in self._processes:
            code = process.wait(self._limit_s)
            if code:
                raise SetupError(f"httperf ended with exit code {code}:\n{process.output()[-1500:]}")
        return combine([parse_httperf(process.output()) for process in self._processes])

    def stop(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.stop()
