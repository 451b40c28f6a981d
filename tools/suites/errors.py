"""Errors that end a suite or fail one of its tests."""

from __future__ import annotations


class SuiteError(Exception):
    """The suite or test cannot continue; the message states the reason and the remedy."""


class TooLateError(SuiteError):
    """An expected event did not occur within its time limit."""


class UnmetError(SuiteError):
    """The outcome differs from what the tested repository documents."""


def expect(so: bool, otherwise: str) -> None:
    """Raise UnmetError with the message `otherwise` unless the condition `so` is true."""
    if not so:
        raise UnmetError(otherwise)
