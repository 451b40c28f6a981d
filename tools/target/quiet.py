"""When a switch has nothing left to do."""

from __future__ import annotations

import fcntl
import struct
import termios
import time
from collections.abc import Callable, Iterable
from pathlib import Path

SAMPLE_S = 0.02
SAMPLES = 3
"""So many samples in a row have to look the same."""


def await_quiet(pid: int, pipes: Iterable[int], timeout_s: float, watch: Callable[[], None] = lambda: None) -> bool:
    """Wait until the process has read all pipes (descriptors) and every thread of it sleeps; False after the timeout.

    A thread that is to run but does not get the processor is not asleep, so a busy machine only makes it longer.
    ``watch`` is called meanwhile, and raises where the wait is in vain: a process that has ended never sleeps.
    """
    pipes = list(pipes)
    deadline = time.monotonic() + timeout_s
    same, before = 0, -1
    while time.monotonic() < deadline:
        used = None if any(_unread(pipe) for pipe in pipes) else _asleep(pid)
        same = same + 1 if used is not None and used == before else 0
        before = -1 if used is None else used
        if same >= SAMPLES:
            return True
        watch()
        time.sleep(SAMPLE_S)
    return False


def _unread(pipe: int) -> int:
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def _asleep(pid: int) -> int | None:
    """How often the process's threads have been given the processor; None while one of them wants it."""
    switches = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
                return None
            status = (task / "status").read_text()
            switches += sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)
    except OSError:
        return None
    return switches
