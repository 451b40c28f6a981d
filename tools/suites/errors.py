"""Errors that end a suite or fail one of its tests."""

from __future__ import annotations


class SuiteError(Exception):
    """The suite or test cannot go on; the text states why and what to do."""


class TooLateError(SuiteError):
    """Something expected did not happen within its time limit."""


class UnmetError(SuiteError):
    """The outcome differs from what the tested repository documents."""


def expect(so: bool, otherwise: str) -> None:
    """Raise UnmetError with the text `otherwise` unless the condition `so` holds."""
    if not so:
        raise UnmetError(otherwise)
