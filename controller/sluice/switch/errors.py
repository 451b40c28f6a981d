"""Errors of the switch modules, as one family of exceptions."""

from __future__ import annotations

from finsy import GRPCStatusCode, P4ClientError


class SwitchError(Exception):
    """The switch refused a request, or its answer is not a valid one. The text names the request and the remedy."""


class SwitchLost(SwitchError):
    """The connection to the switch is lost; trying again may help."""


class NotPrimary(SwitchError):
    """Another controller is the switch's primary controller now."""


class AlreadyExists(SwitchError):
    """The entity that was to be inserted already exists."""


_LOST = {GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED, GRPCStatusCode.CANCELLED}


def translated(error: P4ClientError, address: str, doing: str) -> SwitchError:
    """Return the SwitchError for a failed call. It quotes the server's message and the update that failed."""
    if error.code in _LOST:
        return SwitchLost(f"switch {address}: {doing}: {error.message or error.code.name}")
    # BMv2: "Not primary"; the specification: PERMISSION_DENIED when the election id is not the primary's.
    if error.code is GRPCStatusCode.PERMISSION_DENIED:
        return NotPrimary(f"switch {address}: {doing}: {error.message or 'not the primary controller'}")
    if not error.details:
        return SwitchError(f"switch {address}: {doing}: {error.code.name}: {error.message}")
    problems = [
        f"{detail.canonical_code.name}: {detail.message or '(no text)'} in update {index}: {_flat(detail.subvalue)}"
        for index, detail in sorted(error.details.items())
    ]
    shown = "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")
    exists = all(detail.canonical_code is GRPCStatusCode.ALREADY_EXISTS for detail in error.details.values())
    return (AlreadyExists if exists else SwitchError)(f"switch {address}: {doing}: {shown}")


def _flat(value: object) -> str:
    return " ".join(str(value).split())
