"""Which program runs of the lab and of the experiments are made with."""

from __future__ import annotations

import subprocess
from functools import cache

from topo.switches import REPOSITORY

PROGRAM = ("controller", "experiments", "p4src", "sim", "switch", "testbed", "topo", "workload")
"""What is run and runs it; `docs` is written by it."""


@cache
def program(*more: str) -> str:
    """Return the commit that is checked out, and whether the program's files differ from it; "" without git.

    `more`: files and folders of the repository that are part of what runs, beside PROGRAM.

    Later calls return what the first one did: a program is what was loaded, whatever is checked out while it runs.
    """
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *PROGRAM, *more)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f"{commit}, changed" if changed else commit


def _git(*arguments: str) -> str:
    command = ["git", "-c", f"safe.directory={REPOSITORY}", "-C", str(REPOSITORY), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
