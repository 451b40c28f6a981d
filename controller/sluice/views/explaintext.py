"""Renders the data that `explain` gathers as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_STATES = {
    "pending": "its SYN is not answered yet",
    "answered": "the server's SYN-ACK was seen",
    "established": "open",
    "reopening": "open, and the client has sent another SYN",
    "client_closing": "the client has sent its FIN",
    "server_closing": "the server has sent its FIN",
    "client_reset": "the client has reset it",
    "closed": "closed by both sides, or left by its agent",
    "reset": "the server has reset it",
}
_LIMITS = {
    "admission": "admission of the service",
    "destination": "its destination, for all clients",
    "returning": "its destination, for remembered clients that this refused",
}


def render(shown: Mapping[str, Any]) -> str:
    """Return the explanation as text for a terminal."""
    client = shown["client"] + (f":{shown['port']}" if shown["port"] is not None else "")
    lines = [f"{client} to {shown['service']} {shown['address']}", ""]
    for connection in shown["connections"]:
        lines += _connection(shown["client"], connection)
    if not shown["connections"]:
        lines.append("no pin: its packets, if any, go by capacity")
    return "\n".join([*lines, "", *_new(shown["new"]), *_limits(shown["limits"])])


def _connection(client: str, pin: Mapping[str, Any]) -> list[str]:
    state = _STATES.get(pin["state"], pin["state"])
    since = f"{_clock(pin['seen_unix_s'])}, {pin['seen_before_s']:g} s ago at least"
    lines = [
        f"{client}:{pin['port']} is pinned to {pin['server']}: {pin['state']} ({state})",
        f"  {_pinned(pin['pinned_after_unix_s'], pin['pinned_before_unix_s'])}",
        f"  a packet last kept the pin at {since}; it is kept {pin['kept_s']:g} s from then",
    ]
    if pin["over"]:
        lines.append("  that time is over: any new connection may take its slot")
    if pin["unwilling"]:
        lines.append(f"  {pin['server']} {pin['unwilling']}: it gets no new connections")
    if pin["weights"]:
        when = f"then ({_clock(pin['weights_unix_s'])})" if pin["weights_of"] == "trace" else "now (no trace of then)"
        weights = ", ".join(f"{name} {weight}" for name, weight in pin["weights"].items())
        lines.append(f"  weights {when}: {weights}")
    return lines


def _pinned(after_s: float | None, before_s: float | None) -> str:
    """Return the time since which the connection has had its entry, as far as the controller's sweeps of the connection
    table show."""
    if after_s is not None and before_s is not None:
        return f"since a time from {_clock(after_s)} to {_clock(before_s)}"
    if after_s is not None:
        return f"since a time after {_clock(after_s)}, the controller's last look at the table"
    if before_s is not None:
        return f"since before {_clock(before_s)}, the controller's first look at the table"
    return "since when is not known before the controller's first look at the table, a minute after its start"


def _new(new: Mapping[str, Any]) -> list[str]:
    goes = "goes nowhere" if new["by"] == "drop" else f"would go to {new['server']}, by {new['by']}"
    lines = [f"a new SYN {goes}: {new['why']}" if new["by"] else f"a new SYN: {new['why']}"]
    shares = ", ".join(f"{name} {weight} ({new['shares'][name]:.1%})" for name, weight in new["weights"].items())
    return [*lines, f"weights now: {shares or 'none'}"]


def _limits(limits: list[Mapping[str, Any]]) -> list[str]:
    if not limits:
        return ["limits on new connections: none"]
    return [
        f"limit, {_LIMITS[limit['limit']]}: {limit['rate_per_s']:g} new connections/s, {limit['burst']:g} at once"
        for limit in limits
    ]


def _clock(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
