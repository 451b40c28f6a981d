"""What can go wrong with a switch, in one family."""

from __future__ import annotations

from finsy import GRPCStatusCode, P4ClientError


class SwitchError(Exception):
    """The switch refused something, or answered what it should not have. The text says which and what to do."""


class SwitchLost(SwitchError):
    """The connection to the switch is gone; worth another try."""


class NotPrimary(SwitchError):
    """Another controller is the primary one now."""


class AlreadyThere(SwitchError):
    """What was to be added is there."""


_LOST = {GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED, GRPCStatusCode.CANCELLED}


def translated(error: P4ClientError, address: str, doing: str) -> SwitchError:
    """The SwitchError for a failed call; keeps the server's own words and the update that failed."""
    if error.code in _LOST:
        return SwitchLost(f"switch {address}: {doing}: {error.message or error.code.name}")
    # BMv2: "Not primary"; the specification: PERMISSION_DENIED when the election id is not the primary's.
    if error.code is GRPCStatusCode.PERMISSION_DENIED:
        return NotPrimary(f"switch {address}: {doing}: {error.message or 'not the primary controller'}")
    if not error.details:
        return SwitchError(f"switch {address}: {doing}: {error.code.name}: {error.message}")
    parts = [
        f"{detail.canonical_code.name}: {detail.message or '(no text)'} in update {index}: {_flat(detail.subvalue)}"
        for index, detail in sorted(error.details.items())
    ]
    shown = "; ".join(parts[:3]) + (f"; and {len(parts) - 3} more" if len(parts) > 3 else "")
    there = all(detail.canonical_code is GRPCStatusCode.ALREADY_EXISTS for detail in error.details.values())
    return (AlreadyThere if there else SwitchError)(f"switch {address}: {doing}: {shown}")


def _flat(value: object) -> str:
    return " ".join(str(value).split())
