"""The exceptions of the switch modules; SwitchError is their base class."""

from __future__ import annotations

from finsy import GRPCStatusCode, P4ClientError


class SwitchError(Exception):
    """The switch refused a request, or its answer is invalid. The message names the request and the remedy."""


class SwitchLost(SwitchError):
    """The connection to the switch is lost; another attempt may succeed."""


class NotPrimary(SwitchError):
    """Another controller is the switch's primary controller now."""


class AlreadyExists(SwitchError):
    """The entity that was to be inserted already exists."""


_LOST = {GRPCStatusCode.UNAVAILABLE, GRPCStatusCode.DEADLINE_EXCEEDED, GRPCStatusCode.CANCELLED}


def translated(error: P4ClientError, address: str, doing: str) -> SwitchError:
    """Return the SwitchError for a failed call. The message quotes the server's message and the failed update."""
    if error.code in _LOST:
        return SwitchLost(f"switch {address}: {doing}: {error.message or error.code.name}")
    # P4Runtime specifies this code for a request whose election id is not that of the primary controller.
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
