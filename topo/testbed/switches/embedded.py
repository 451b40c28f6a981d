"""The embedded switch: sluice's own switch, written in Rust."""

from __future__ import annotations

import os
from pathlib import Path

from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError

from .kind import Kind

BINARY = REPOSITORY / "target/release/sluice-switch"


def find() -> Path:
    """Return the path of the release build, or of the program in $SLUICE_SWITCH. Raises SetupError if the file does not
    exist."""
    path = Path(os.environ.get("SLUICE_SWITCH", BINARY))
    if not path.is_file():
        raise SetupError(f"{path} is not there: cargo build --release, or run by make")
    return path.resolve()


EMBEDDED = Kind("embedded", "sluice-switch", find, verbose=("--log-console", "-L", "info"))
