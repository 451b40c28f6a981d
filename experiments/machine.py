"""The machine that the experiments ran on."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Machine:
    """Hardware and software of a machine."""

    cpu: str
    cores: int
    memory_mb: int
    kernel: str
    python: str

    def sentence(self) -> str:
        """Return a description of the machine as text."""
        return (
            f"{self.cores} cores ({self.cpu}), {self.memory_mb // 1024} GB, Linux {self.kernel}, Python {self.python}"
        )


def _first(file: str, pattern: str, otherwise: str) -> str:
    try:
        match = re.search(pattern, Path(file).read_text(), re.MULTILINE)
    except OSError:
        return otherwise
    return match.group(1).strip() if match else otherwise


@cache
def this_machine() -> Machine:
    """Return the description of the machine on which this process runs."""
    return Machine(
        cpu=_first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$", platform.machine()),
        cores=len(os.sched_getaffinity(0)),
        memory_mb=int(_first("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0")) // 1024,
        kernel=platform.release(),
        python=platform.python_version(),
    )
