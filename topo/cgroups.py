"""CPU limits for the lab's servers: one cgroup per server, on cgroup version 1 or 2.

A group is named `sluice-lab-<pid of the lab>-<server>`; groups whose lab is no more are removed when the next
one starts.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from topo.errors import LabError
from topo.processes import await_true
from topo.usage import processor_s

PREFIX = "sluice-lab-"
PERIOD_US = 100_000
"""Microseconds over which the kernel grants the quota (its default)."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where the CPU controller is mounted."""

    root: Path
    version: int


def find_hierarchy(mounts: str) -> Hierarchy:
    """Find the CPU controller in the text of /proc/mounts; raise LabError if there is none."""
    unified: Path | None = None
    for line in mounts.splitlines():
        _, place, kind, options = line.split()[:4]
        if kind == "cgroup" and "cpu" in options.split(","):
            return Hierarchy(Path(place), 1)
        if kind == "cgroup2":
            unified = Path(place)
    if unified is None:
        raise LabError("no cgroup file system with the cpu controller is mounted: mount cgroup2 on /sys/fs/cgroup")
    return Hierarchy(unified, 2)


class CpuGroup:
    """A cgroup that grants its processes a share of one CPU."""

    def __init__(self, hierarchy: Hierarchy, name: str, share: float, *, period_us: int = PERIOD_US) -> None:
        """Create the group; `share` is in CPUs (0.1 = a tenth of one), granted anew every `period_us` microseconds."""
        self.path = hierarchy.root / f"{PREFIX}{os.getpid()}-{name}"
        quota_us = round(share * period_us)
        try:
            if hierarchy.version == 2:
                _enable_cpu(hierarchy.root)
            self.path.mkdir()
            if hierarchy.version == 1:
                (self.path / "cpu.cfs_period_us").write_text(str(period_us))
                (self.path / "cpu.cfs_quota_us").write_text(str(quota_us))
            else:
                (self.path / "cpu.max").write_text(f"{quota_us} {period_us}")
        except OSError as error:
            raise LabError(
                f"cannot limit the CPU of {name} by a cgroup: {error}; "
                "the lab needs root and a writable cgroup file system"
            ) from error

    @property
    def procs(self) -> Path:
        """The file a process joins the group by."""
        return self.path / "cgroup.procs"

    def used_s(self) -> float:
        """Return the seconds of CPU that the processes now in the group have used since each was started."""
        return sum(processor_s(int(pid)) for pid in self.procs.read_text().split())

    def remove(self) -> None:
        """Kill what is left in the group and remove it."""
        _remove(self.path)


def _enable_cpu(root: Path) -> None:
    control = root / "cgroup.subtree_control"
    if "cpu" not in control.read_text().split():
        control.write_text("+cpu")


def _remove(path: Path) -> None:
    def empty() -> bool:
        pids = [int(pid) for pid in (path / "cgroup.procs").read_text().split()]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    if path.exists():
        await_true(f"{path}: empty", empty, 5.0)
        path.rmdir()


def remove_stale(hierarchy: Hierarchy) -> None:
    """Remove the groups of labs that no longer run."""
    for path in hierarchy.root.glob(f"{PREFIX}*"):
        owner = path.name.removeprefix(PREFIX).split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            _remove(path)


def mounted_hierarchy() -> Hierarchy:
    """Find the CPU controller of this machine."""
    return find_hierarchy(Path("/proc/mounts").read_text())


def remove_own(hierarchy: Hierarchy) -> None:
    """Remove every group of this lab."""
    for path in hierarchy.root.glob(f"{PREFIX}{os.getpid()}-*"):
        _remove(path)
