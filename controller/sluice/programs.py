"""The programs beside the controller: ``sluice-switch`` and ``sluice-agent``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

_BUILT = Path(__file__).resolve().parents[2] / "switch/target/release"
_WHERE = "beside `sluice`, in a checkout, or on the PATH"


def find(name: str) -> Path | None:
    """A program: of a checkout, beside the `sluice` that runs, or on the PATH; None where there is none."""
    for folder in (_BUILT, *_beside()):
        if (program := folder / name).is_file() and os.access(program, os.X_OK):
            return program
    found = shutil.which(name)
    return Path(found) if found else None


def missing(name: str) -> str:
    """What to do about a program that is not found."""
    return f"no {name} {_WHERE}; install the wheel sluice-switch where `sluice` is, or build it: `make setup`"


def _beside() -> Iterator[Path]:
    """Where an installation has put `sluice`: as it was called, behind symbolic links, and where its Python is, which
    `python -m sluice` names only."""
    called = Path(sys.argv[0])
    yield called.parent.absolute()
    yield called.resolve().parent
    yield Path(sys.executable).parent
