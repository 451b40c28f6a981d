"""Errors by which lab, packet tests and tools end."""

from __future__ import annotations

from pathlib import Path


class SetupError(Exception):
    """A program or file that a run needs cannot be used, or has ended; the message states which one, where, and the
    remedy."""


def refusal(error: OSError, place: Path) -> str:
    """Return a line for the user: the file of the error (or `place`), the system's reason, and the remedy."""
    return f"{error.filename or place}: {error.strerror or error}: mend that and run it again"
