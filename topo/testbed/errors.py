"""What lab, packet tests and tools report when they cannot go on."""

from __future__ import annotations

from pathlib import Path


class SetupError(Exception):
    """What a run needs cannot be started, or has ended: what, where, and the remedy."""


def refusal(error: OSError, place: Path) -> str:
    """Return, as a line for the user, what the system refused, in which file (or below `place`), and the remedy."""
    return f"{error.filename or place}: {error.strerror or error}: mend that and run it again"
