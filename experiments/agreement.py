"""The criterion by which a figure of the simulation agrees with the lab's figure. Pure functions."""

from __future__ import annotations

PART = 0.15
"""The largest difference that counts as agreement, as a fraction of the lab's figure."""


def percent(off: float) -> str:
    """Return the relative difference between simulation and lab as text, with enough digits to show on which side of
    PART the difference is."""
    digits = next((n for n in range(6) if (round(abs(off), n + 2) <= PART) is (abs(off) <= PART)), 6)
    return f"{off:+.{digits}%}"
