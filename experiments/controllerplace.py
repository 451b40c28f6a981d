"""The environment in which the controller's cost is measured: a configuration, a switch without ports, and timing."""

from __future__ import annotations

import statistics
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topo.testbed.processes import Process
from topo.testbed.switches import EMBEDDED, Endpoints

SERVING = "serving P4Runtime on "


def configuration(servers: int, **options: Any) -> dict[str, Any]:
    """Return a configuration of one service with `servers` servers; `options` are added to the service's settings."""
    return {
        "interfaces": [
            {"port": 1, "mac": "02:00:00:00:00:01", "address": "10.1.0.1/16"},
            {"port": 2, "mac": "02:00:00:00:00:02", "address": "10.2.0.1/16"},
        ],
        "services": [
            {
                "name": "web",
                "address": "10.0.0.100",
                "port": 80,
                **options,
                "servers": [
                    {"name": f"s{n}", "address": f"10.2.{(n + 9) // 250}.{(n + 9) % 250 + 2}", "port": 80}
                    for n in range(servers)
                ],
            }
        ],
    }


@contextmanager
def serving(directory: Path) -> Generator[str]:
    """Start a switch, yield the address of its P4Runtime server, and end the switch after the block."""
    words = EMBEDDED.command(EMBEDDED.find(), {}, Endpoints("127.0.0.1:0", directory))
    process = Process("the switch", words, log=directory / "switch.log")
    try:
        yield process.await_output(SERVING, 20).split(SERVING)[1].split(",")[0]
    finally:
        process.stop()


@dataclass(slots=True)
class Cost:
    """Wall-clock and CPU seconds that this process (the controller) spends on one phase of a round, by round."""

    wall: list[float]
    cpu: list[float]

    @classmethod
    def none(cls) -> Cost:
        """Return an empty record."""
        return cls([], [])

    @contextmanager
    def measured(self) -> Generator[None]:
        """Record the wall-clock and the CPU time of the `with` block as one round."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)

    def values(self) -> dict[str, float]:
        """Return the median and the maximum wall-clock time and the median CPU time over the rounds, in ms."""
        return {
            "ms": 1000 * statistics.median(self.wall),
            "worst_ms": 1000 * max(self.wall),
            "cpu_ms": 1000 * statistics.median(self.cpu),
        }
