"""Finds the executables that the controller needs: ``sluice-switch`` and ``sluice-agent``."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

_BUILT = Path(__file__).resolve().parents[2] / "target/release"
_WHERE = "beside `sluice`, in a checkout, or on the PATH"


def find(name: str) -> Path | None:
    """Return an executable's path: in a checkout, beside the running `sluice`, or on the PATH; None if it is not
    found."""
    for folder in (_BUILT, *_beside()):
        if (program := folder / name).is_file() and os.access(program, os.X_OK):
            return program
    path = shutil.which(name)
    return Path(path) if path else None


def missing(name: str) -> str:
    """Return an error text, with the remedy, for an executable that is not found."""
    return f"no {name} {_WHERE}; install the wheel sluice-switch where `sluice` is, or build it: `make setup`"


def _beside() -> Iterator[Path]:
    """Yield the folders in which an installation may have put `sluice` and its executables.

    The first is the folder in the path with which `sluice` was started. The second is the folder of the file to which
    this path leads through symbolic links. The third is the folder of the Python interpreter, for `python -m sluice`.
    """
    called = Path(sys.argv[0])
    yield called.parent.absolute()
    yield called.resolve().parent
    yield Path(sys.executable).parent
