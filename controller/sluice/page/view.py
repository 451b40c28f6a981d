"""Converts a status to rows and lines, for the page and for ``sluice top``, by pure functions."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .rates import Rates, Sample, Status

Row = dict[str, Any]
"""A table row: the value of each column, by the column's field name."""
NONE = "–"
"""The text that is shown in place of an unknown number."""

_LONGEST_SEARCH = 200
"""The largest number of characters in a search for events."""
_MOST_NAMED = 12
"""The largest number of problems that `out` lists one by one."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A table's columns: titles by field name, and the names of the fields that contain text."""

    titles: Mapping[str, str]
    text: frozenset[str]


SERVICES = Columns(
    {
        "name": "service",
        "condition": "condition",
        "in": "servers in",
        "open": "open",
        "syn_s": "SYN/s",
        "refused_s": "refused/s",
        "failures_s": "failures/s",
        "mode": "mode",
        "address": "address",
    },
    frozenset({"name", "condition", "in", "mode", "address"}),
)
SERVERS = Columns(
    {
        "name": "server",
        "state": "state",
        "ratio": "ratio",
        "r": "R",
        "open": "open",
        "syn_s": "SYN/s",
        "failures_s": "failures/s",
        "reset_s": "RST/s",
        "weight": "weight",
        "syn": "SYN",
        "synack": "SYN-ACK",
        "completed": "done",
        "address": "address",
    },
    frozenset({"name", "state", "address"}),
)
DESTINATIONS = Columns(
    {
        "name": "destination",
        "offered_s": "offered/s",
        "admitted_s": "admitted/s",
        "refused_s": "refused/s",
        "limit": "limit/s",
        "offered": "offered",
        "admitted": "admitted",
        "refused": "refused",
        "returning": "returning",
    },
    frozenset({"name"}),
)
DROPS = Columns({"reason": "reason", "count": "packets", "count_s": "packets/s"}, frozenset({"reason"}))
HEALTH = Columns({"what": "what", "value": "value"}, frozenset({"what", "value"}))
EVENTS = Columns({"time": "time", "kind": "kind", "text": "what and why"}, frozenset({"time", "kind", "text"}))


def quantity(value: float | str | None, digits: int = 1) -> str:
    """Return a number as text with ``digits`` decimals; without decimals if it is whole or its amount is at least 1000.

    Infinity becomes ``inf``, None a dash; text is unchanged.
    """
    if value is None:
        return NONE
    if isinstance(value, str) or math.isinf(value):
        return str(value)
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:,.{digits}f}"


def total(values: Collection[float | None]) -> float | None:
    """Return the sum of the known values; None if none is known."""
    addends = [value for value in values if value is not None]
    return sum(addends) if addends else None


def head(status: Status) -> str:
    """Return a line with the switch's address, its device id and the controller's role."""
    return f"switch {status['switch']} device {status['device_id']}: {status['role']}"


def services(sample: Sample, rates: Rates) -> list[Row]:
    """Return a row for each service."""
    return [
        {
            "name": service["name"],
            "address": service["address"],
            "mode": service["mode"],
            "condition": service["condition"],
            "in": f"{sum(server['state'] == 'in' for server in service['servers'])} of {len(service['servers'])}",
            "open": sum(server["open"] for server in service["servers"]),
            "syn_s": quantity(rates.service(service, "offered")),
            "refused_s": quantity(rates.service(service, "refused")),
            "failures_s": quantity(total([rates.failures(service["name"], server) for server in service["servers"]])),
        }
        for service in sample.status.get("services", ())
    ]


def service(sample: Sample, name: str | None) -> Mapping[str, Any] | None:
    """Return the status of the service with that name, else that of the first service; None without services."""
    services: Sequence[Mapping[str, Any]] = sample.status.get("services", ())
    return next((candidate for candidate in services if candidate["name"] == name), services[0] if services else None)


def servers(service: Mapping[str, Any], rates: Rates) -> list[Row]:
    """Return a row for each server of a service."""
    name = service["name"]
    return [
        {
            "name": server["name"],
            "address": server["address"],
            "state": server["state"],
            "ratio": f"{server['ratio']:.4f}",
            "weight": server["weight"],
            "r": quantity(server["r"], 3),
            "open": server["open"],
            "syn_s": quantity(rates.server(name, server, "syn")),
            "failures_s": quantity(rates.failures(name, server)),
            "reset_s": quantity(rates.server(name, server, "reset")),
            "syn": server["syn"],
            "synack": server["synack"],
            "completed": server["completed"],
        }
        for server in service["servers"]
    ]


def out(status: Status) -> list[str]:
    """Return what is out of service: servers in any state except ``in``, agents and neighbours that do not answer, and
    retired servers that still have connections. If there are more than `_MOST_NAMED` problems, only that many are
    listed, and a last item gives the number of the others."""
    problems = [
        f"{service['name']}/{server['name']} is {server['state']}"
        for service in status.get("services", ())
        for server in service["servers"]
        if server["state"] != "in"
    ]
    problems += [
        f"agent {service['name']}/{agent['name']} does not answer"
        for service in status.get("services", ())
        for agent in service.get("content", {}).get("agents", ())
        if not agent["answers"]
    ]
    problems += [f"{address} does not answer ARP" for address in status.get("neighbours_missing", ())]
    problems += [f"{address} is retired and still has connections" for address in status.get("retired", ())]
    more = len(problems) - _MOST_NAMED
    return problems if more <= 0 else [*problems[:_MOST_NAMED], f"and {more} more"]


def destinations(news: Mapping[str, Any], rates: Rates) -> list[Row]:
    """Return a row for each destination that flash-crowd control watches."""
    limits = {destination["destination"]: destination["limit_per_s"] for destination in news["limits"]}
    return [
        {key: destination[key] for key in ("name", "offered", "admitted", "refused", "returning")}
        | {f"{key}_s": quantity(rates.destination(destination, key)) for key in ("offered", "admitted", "refused")}
        | {"limit": quantity(limits.get(destination["name"], limits.get("every destination")))}
        for destination in news["destinations"]
    ]


def crowd(news: Mapping[str, Any]) -> str:
    """Return a line with the measurements of flash-crowd control."""
    ar, average = (news[key] for key in ("ar_bps", "ar_average_bps"))
    figures = [
        f"mode {news['mode']}",
        f"AR {quantity(None if ar is None else ar / 1000)} kbit/s",
        f"on average {quantity(None if average is None else average / 1000)} kbit/s",
        f"{news['flows']} responses",
        *(["alarm"] if news["alarm"] else []),
        *(f"hot spot {name}" for name in news["hot_spots"]),
    ]
    return ", ".join(figures)


def drops(sample: Sample, rates: Rates) -> list[Row]:
    """Return a row for each reason for which packets were dropped, the most frequent first."""
    counts: Mapping[str, int] = sample.status["packets"]["drops"] if "packets" in sample.status else {}
    return [
        {"reason": reason, "count": count, "count_s": quantity(rates.packets(sample.status, "drops", reason))}
        for reason, count in sorted(counts.items(), key=lambda item: -item[1])
        if count
    ]


def health(status: Status) -> list[Row]:
    """Return rows about the switch, and about packets to and from the controller."""
    values: dict[str, Any] = {
        "controller": status["role"],
        "program loaded again": f"{status['reprogrammed']} times",
    }
    if "packets" in status:
        packets = status["packets"]
        values |= {
            "packets forwarded": quantity(packets["forwarded"]),
            "to the controller": _listed(packets["punts"]),
            "above its limit": _listed(packets["punts_limited"]),
            "lost in the controller": quantity(packets["not_read"]),
            "from the controller": quantity(packets["injected"]),
        }
    return [{"what": name, "value": value} for name, value in values.items()]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count) or "none"


def events(
    past: Sequence[Mapping[str, Any]],
    text: str = "",
    kinds: Collection[str] = (),
    first: int = 0,
    count: int | None = None,
) -> tuple[list[Row], int]:
    """Return rows of matching events, newest first, and the number of all matching events.

    An event matches if it contains all words of ``text`` and its kind is in ``kinds`` (any kind, if empty). ``first``
    and ``count`` (None: all) select the rows.
    """
    words = set(text[:_LONGEST_SEARCH].casefold().split())
    matching = [
        (number, event)
        for number, event in enumerate(past)
        if (not kinds or event["kind"] in kinds) and all(word in event["text"].casefold() for word in words)
    ]
    matching.reverse()
    selected = matching[first:] if count is None else matching[first : first + count]
    return [
        {
            "id": number,
            "time": f"{datetime.fromtimestamp(event['time']):%m-%d %H:%M:%S}",
            "kind": event["kind"],
            "text": event["text"],
        }
        for number, event in selected
    ], len(matching)
