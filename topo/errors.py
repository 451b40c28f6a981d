"""What the lab says when it cannot go on."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import SetupError

LabError = SetupError


def refusal(error: OSError, place: Path) -> str:
    """Return what the system refused and where, or at least below which place, and the remedy, for that person."""
    return f"{error.filename or place}: {error.strerror or error}: mend that and run it again"
