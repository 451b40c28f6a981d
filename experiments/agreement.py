"""When a figure of the simulation agrees with the lab's. Without side effects."""

from __future__ import annotations

PART = 0.15
"""Figures agree that differ by at most this share of the lab's."""


def percent(off: float) -> str:
    """Return the relative difference of a figure from the lab's, with enough digits to see whether it agrees."""
    digits = next((n for n in range(6) if (round(abs(off), n + 2) <= PART) is (abs(off) <= PART)), 6)
    return f"{off:+.{digits}%}"
