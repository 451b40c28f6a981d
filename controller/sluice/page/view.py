"""What is to be seen of a status, as rows and lines: for the page and for ``sluice top``. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .rates import Rates, Sample, Status

Row = dict[str, Any]
"""A row of a table, by column."""
NONE = "–"
"""In place of a number that nobody knows."""

_SOUGHT = 200
"""Characters of what is sought in events."""
_NAMED = 12
"""So many of those that are out are named."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A table's columns: field, title, and which of them are text."""

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
    """A number for a person: none, infinity as ``inf``, few digits."""
    if value is None:
        return NONE
    if isinstance(value, str) or math.isinf(value):
        return str(value)
    return f"{value:,.0f}" if value == round(value) or abs(value) >= 1000 else f"{value:,.{digits}f}"


def total(values: Collection[float | None]) -> float | None:
    """The sum of those that are known; None when none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def head(status: Status) -> str:
    """Which switch it is, and what this controller is to it."""
    return f"switch {status['switch']} device {status['device_id']}: {status['role']}"


def services(sample: Sample, rates: Rates) -> list[Row]:
    """A row for each service."""
    return [
        {
            "name": one["name"],
            "address": one["address"],
            "mode": one["mode"],
            "condition": one["condition"],
            "in": f"{sum(server['state'] == 'in' for server in one['servers'])} of {len(one['servers'])}",
            "open": sum(server["open"] for server in one["servers"]),
            "syn_s": quantity(rates.service(one, "offered")),
            "refused_s": quantity(rates.service(one, "refused")),
            "failures_s": quantity(total([rates.failures(one["name"], server) for server in one["servers"]])),
        }
        for one in sample.status.get("services", ())
    ]


def service(sample: Sample, name: str | None) -> Mapping[str, Any] | None:
    """A service by its name; the first one when there is none of that name; None without services."""
    found: Sequence[Mapping[str, Any]] = sample.status.get("services", ())
    return next((one for one in found if one["name"] == name), found[0] if found else None)


def servers(one: Mapping[str, Any], rates: Rates) -> list[Row]:
    """A row for each server of a service."""
    name = one["name"]
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
        for server in one["servers"]
    ]


def out(status: Status) -> list[str]:
    """Who takes no new connections, or does not answer: what a person should look at first."""
    found = [
        f"{one['name']}/{server['name']} is {server['state']}"
        for one in status.get("services", ())
        for server in one["servers"]
        if server["state"] != "in"
    ]
    found += [
        f"agent {one['name']}/{agent['name']} does not answer"
        for one in status.get("services", ())
        for agent in one.get("content", {}).get("agents", ())
        if not agent["answers"]
    ]
    found += [f"{address} does not answer ARP" for address in status.get("neighbours_missing", ())]
    found += [f"{address} is retired and still has connections" for address in status.get("retired", ())]
    more = len(found) - _NAMED
    return found if more <= 0 else [*found[:_NAMED], f"and {more} more"]


def destinations(news: Mapping[str, Any], rates: Rates) -> list[Row]:
    """A row for each destination that flash-crowd control watches."""
    limits = {one["destination"]: one["limit_per_s"] for one in news["limits"]}
    return [
        {key: one[key] for key in ("name", "offered", "admitted", "refused", "returning")}
        | {f"{key}_s": quantity(rates.destination(one, key)) for key in ("offered", "admitted", "refused")}
        | {"limit": quantity(limits.get(one["name"], limits.get("every destination")))}
        for one in news["destinations"]
    ]


def crowd(news: Mapping[str, Any]) -> str:
    """What flash-crowd control measures, in a line."""
    ar, average = (news[key] for key in ("ar_bps", "ar_average_bps"))
    told = [
        f"mode {news['mode']}",
        f"AR {quantity(None if ar is None else ar / 1000)} kbit/s",
        f"on average {quantity(None if average is None else average / 1000)} kbit/s",
        f"{news['flows']} responses",
        *(["alarm"] if news["alarm"] else []),
        *(f"hot spot {name}" for name in news["hot_spots"]),
    ]
    return ", ".join(told)


def drops(sample: Sample, rates: Rates) -> list[Row]:
    """A row for each reason that packets were dropped for, the most frequent first."""
    counts: Mapping[str, int] = sample.status["packets"]["drops"] if "packets" in sample.status else {}
    return [
        {"reason": reason, "count": count, "count_s": quantity(rates.packets(sample.status, "drops", reason))}
        for reason, count in sorted(counts.items(), key=lambda one: -one[1])
        if count
    ]


def health(status: Status) -> list[Row]:
    """The switch and the way to it."""
    told: dict[str, Any] = {
        "controller": status["role"],
        "program loaded again": f"{status['reprogrammed']} times",
    }
    if "packets" in status:
        packets = status["packets"]
        told |= {
            "packets forwarded": quantity(packets["forwarded"]),
            "to the controller": _listed(packets["punts"]),
            "above its limit": _listed(packets["punts_limited"]),
            "lost in the controller": quantity(packets["not_read"]),
            "from the controller": quantity(packets["injected"]),
        }
    return [{"what": what, "value": value} for what, value in told.items()]


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count) or "none"


def events(
    past: Sequence[Mapping[str, Any]],
    text: str = "",
    kinds: Collection[str] = (),
    first: int = 0,
    count: int | None = None,
) -> tuple[list[Row], int]:
    """The events that have a text and are of one of some kinds (none: of any), the newest first: rows of so many of
    them (None: all) from the first on, and how many there are."""
    wanted = set(text[:_SOUGHT].casefold().split())
    found = [
        (number, one)
        for number, one in enumerate(past)
        if (not kinds or one["kind"] in kinds) and all(word in one["text"].casefold() for word in wanted)
    ]
    found.reverse()
    some = found[first:] if count is None else found[first : first + count]
    return [
        {
            "id": number,
            "time": f"{datetime.fromtimestamp(one['time']):%m-%d %H:%M:%S}",
            "kind": one["kind"],
            "text": one["text"],
        }
        for number, one in some
    ], len(found)
