"""Limits of a lab's servers: each server has a cgroup (version 1 or 2) that limits CPU and memory; and the assignment
of processors.

A group is named `sluice-lab-<pid of the lab>-<server>`. A lab that starts removes the groups of labs that no longer
run.

A client that spins, a switch with real-time priority and the workers of a loaded server compete for processors. The
kernel moves them between processors only every few seconds, so a server would sometimes answer ten pages/s and
sometimes eighty. On a machine with several processors the servers are therefore assigned one that only they
use, except with switches that need all processors (`ProcessSwitch.parted_from_servers`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from topo.testbed.errors import SetupError
from topo.testbed.processes import await_true, processor_s

PREFIX = "sluice-lab-"
PERIOD_US = 100_000
"""Period, in microseconds, for which the kernel grants a group its quota of CPU time (the kernel's default)."""

LEAST_QUOTA_US = 1000
"""The smallest quota that the kernel accepts, in microseconds. A group that needs less has a longer period."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted cgroup file system: its root directory and its version."""

    root: Path
    version: int


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """The file systems of the controllers `cpu` and `memory`; in version 2 both have the same."""

    cpu: Hierarchy
    memory: Hierarchy | None
    """None if the memory controller is not mounted: only a group with a memory limit needs it."""

    def distinct(self) -> list[Hierarchy]:
        """Return the file systems without duplicates."""
        return list(dict.fromkeys(hierarchy for hierarchy in (self.cpu, self.memory) if hierarchy is not None))


def find_hierarchies(mounts: str) -> Hierarchies:
    """Find the controllers in the text of /proc/mounts; raise SetupError if the CPU controller is not mounted."""
    unified: Hierarchy | None = None
    by_controller: dict[str, Hierarchy] = {}
    for line in mounts.splitlines():
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup":
            by_controller |= dict.fromkeys(options.split(","), Hierarchy(Path(place), 1))
        if kind == "cgroup2":
            unified = Hierarchy(Path(place), 2)
    cpu = by_controller.get("cpu", unified)
    if cpu is None:
        raise SetupError("no cgroup file system with the cpu controller is mounted: mount cgroup2 on /sys/fs/cgroup")
    # On hosts that mount `cpu` by version 1, the unified (version 2) hierarchy has no controllers, `memory` included.
    return Hierarchies(cpu, by_controller.get("memory", unified if cpu == unified else None))


class Group:
    """A cgroup that limits the CPU time of its processes and, optionally, their memory."""

    def __init__(
        self,
        hierarchies: Hierarchies,
        name: str,
        cpus: float,
        *,
        period_us: int = PERIOD_US,
        memory_bytes: int | None = None,
    ) -> None:
        """Create the group; `cpus`: number of CPUs (0.1: a tenth of a CPU), granted anew every `period_us`
        microseconds.

        If the processes exceed `memory_bytes`, the kernel swaps their memory, or kills a process on a machine without
        swap. Raises SetupError if the group cannot be created.
        """
        cpu, memory = hierarchies.cpu, hierarchies.memory
        controllers = {cpu: ["cpu"]}
        if memory_bytes is not None:
            if memory is None:
                raise SetupError(
                    f"cannot limit the memory of {name}: no cgroup file system with the memory controller is mounted; "
                    "boot with cgroup_enable=memory"
                )
            controllers.setdefault(memory, []).append("memory")
        self._places = {hierarchy: hierarchy.root / f"{PREFIX}{os.getpid()}-{name}" for hierarchy in controllers}
        self._memory = memory
        quota_us = round(cpus * period_us)
        if quota_us < LEAST_QUOTA_US:
            quota_us, period_us = LEAST_QUOTA_US, round(LEAST_QUOTA_US / cpus)
        try:
            for hierarchy, place in self._places.items():
                if hierarchy.version == 2:
                    _enable(hierarchy.root, controllers[hierarchy])
                place.mkdir()
            if cpu.version == 1:
                (self._places[cpu] / "cpu.cfs_period_us").write_text(str(period_us))
                (self._places[cpu] / "cpu.cfs_quota_us").write_text(str(quota_us))
            else:
                (self._places[cpu] / "cpu.max").write_text(f"{quota_us} {period_us}")
            if memory_bytes is not None and memory is not None:
                file = "memory.limit_in_bytes" if memory.version == 1 else "memory.max"
                (self._places[memory] / file).write_text(str(memory_bytes))
        except OSError as error:
            raise SetupError(
                f"cannot limit {name} by a cgroup: {error}; the lab needs root and a writable cgroup file system"
            ) from error

    @property
    def procs(self) -> tuple[Path, ...]:
        """The files through which a process joins the group."""
        return tuple(place / "cgroup.procs" for place in self._places.values())

    def pids(self) -> list[int]:
        """Return the ids of the processes that are in the group."""
        return [int(pid) for pid in self.procs[0].read_text().split()]

    def used_s(self) -> float:
        """Return the CPU time, in seconds, that the first threads of the group's present processes have used."""
        return sum(processor_s(pid) for pid in self.pids())

    def memory_bytes(self) -> int:
        """Return the group's memory in bytes, as the kernel accounts it; the group must have a memory limit."""
        assert self._memory is not None
        usage = "memory.usage_in_bytes" if self._memory.version == 1 else "memory.current"
        return int((self._places[self._memory] / usage).read_text())

    def remove(self) -> None:
        """Kill the processes that remain in the group and remove it."""
        _remove(self._places.values())


def _enable(root: Path, controllers: Iterable[str]) -> None:
    control = root / "cgroup.subtree_control"
    there = control.read_text().split()
    if missing := [f"+{name}" for name in controllers if name not in there]:
        control.write_text(" ".join(missing))


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:

        def empty(procs: Path = path / "cgroup.procs") -> bool:
            pids = [int(pid) for pid in procs.read_text().split()]
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not pids

        if path.exists():
            await_true(f"{path}: empty", empty, 5.0)
            path.rmdir()


def remove_stale(hierarchies: Hierarchies) -> None:
    """Kill the processes in the groups of labs that no longer run, and remove these groups."""
    for hierarchy in hierarchies.distinct():
        for path in hierarchy.root.glob(f"{PREFIX}*"):
            owner = path.name.removeprefix(PREFIX).split("-")[0]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                _remove([path])


def mounted() -> Hierarchies:
    """Find the cgroup controllers of this machine."""
    return find_hierarchies(Path("/proc/mounts").read_text())


def remove_own(hierarchies: Hierarchies) -> None:
    """Kill the processes in the groups of this lab, and remove these groups."""
    for hierarchy in hierarchies.distinct():
        _remove(hierarchy.root.glob(f"{PREFIX}{os.getpid()}-*"))


# -- processors


@dataclass(frozen=True, slots=True)
class Cores:
    """The processors assigned to servers and to everything else, by the kernel's numbers."""

    servers: frozenset[int]
    others: frozenset[int]


def shared_out(allowed: Collection[int]) -> Cores:
    """Assign the last processor to the servers, and the others to everything else; a single processor is assigned to
    both."""
    everyone = frozenset(allowed)
    servers = everyone if len(everyone) == 1 else frozenset({max(everyone)})
    return Cores(servers, everyone - servers or everyone)


@contextmanager
def parted() -> Generator[Cores]:
    """Move the calling thread, and the processes that it starts, to processors other than the servers' until the
    context ends; a single processor is shared."""
    allowed = os.sched_getaffinity(0)
    cores = shared_out(allowed)
    os.sched_setaffinity(0, cores.others)
    try:
        yield cores
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def together() -> Generator[Cores]:
    """Yield an assignment in which servers and everything else may use all processors."""
    everyone = frozenset(os.sched_getaffinity(0))
    yield Cores(everyone, everyone)
