"""What forwards packets runs before all else: switches have processors of their own, and a kernel forwards first."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache

PRIORITY = 1
"""The lowest of the real-time priorities: before every ordinary process, whatever its niceness."""


def before_all_else(argv: Sequence[str]) -> list[str]:
    """Return the command line that runs `argv`, and what it starts, with real-time priority, in turns (SCHED_RR).

    Where that is not allowed (a container without CAP_SYS_NICE) it is `argv` itself.
    """
    return [*(_RUN if _allowed() else []), *argv]


_RUN = ["chrt", "--rr", str(PRIORITY)]


@cache
def _allowed() -> bool:
    return subprocess.run([*_RUN, "true"], capture_output=True, check=False).returncode == 0
