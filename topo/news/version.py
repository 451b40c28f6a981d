"""What a run was made with: one hash of the controller, the lab, the pipeline and the switch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from topo.router import KERNEL
from topo.switches import REPOSITORY, SWITCHES

PACKAGES = ("controller/sluice", "topo")
PIPELINE = "p4src/build/sluice.json"


def digest(root: Path, files: Iterable[Path]) -> str:
    """Return a hash of names and contents, in hexadecimal; raise OSError if a file cannot be read."""
    found = hashlib.sha256()
    for path in sorted(files):
        name = path.relative_to(root) if path.is_relative_to(root) else path.name
        found.update(f"{name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()[:16]


@cache
def version(kind: str) -> str:
    """Return the hash for a kind of switch, or for the kernel; tests and documents are not in it.

    Raises LabError without the switch.
    """
    sources = [
        path for package in PACKAGES for path in (REPOSITORY / package).rglob("*.py") if "tests" not in path.parts
    ]
    switch = [] if kind == KERNEL else [REPOSITORY / PIPELINE, Path(SWITCHES[kind].executable())]
    return digest(REPOSITORY, [*sources, *switch])
