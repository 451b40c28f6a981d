"""Why a suite, or one test of it, does not come to a good end."""

from __future__ import annotations


class SuiteError(Exception):
    """It cannot go on; the text says why and what to do."""


class TooLateError(SuiteError):
    """Something has not come in its time."""


class UnmetError(SuiteError):
    """The outcome is another one than the repository's own words say."""


def expect(so: bool, otherwise: str) -> None:
    """Raise UnmetError where something is not so."""
    if not so:
        raise UnmetError(otherwise)
