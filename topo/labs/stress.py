"""The load on one server: `stress` in the server's own cgroup, so that it takes from that server's CPU only.

Ohta & Andou load disk and I/O as well.  sync(2), which `stress --io` calls, would slow the whole machine whatever
the cgroup, so only its CPU workers are used.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from topo.plan.load import HOGS
from topo.testbed.processes import Process


def start_stress(
    name: str, *, namespace_pid: int, cgroup_procs: Sequence[Path], cores: Collection[int], directory: Path
) -> Process:
    """Load server `name` until the process is stopped."""
    return Process(
        f"stress on {name}",
        ["stress", "--cpu", str(HOGS)],
        log=directory / f"stress-{name}.out",
        namespace_pid=namespace_pid,
        cgroup_procs=cgroup_procs,
        cores=cores,
    )
