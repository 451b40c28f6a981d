"""The last minutes of every service and of flash-crowd control, for charts."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import view
from .rates import Rates, Sample

KEPT = 150
"""So many samples: five minutes of two seconds each."""
QUANTITIES = ("ratio", "r", "open", "syn", "failures")
"""Of a server: its share, R over its window, open connections, SYNs/s, SYNs/s without a SYN-ACK."""
CROWDS = ("offered", "admitted", "refused", "limit", "ar")
"""Of flash-crowd control: per second, of all destinations together; the lowest limit; AR in kbit/s."""

Values = NDArray[np.float32]
Point = tuple[float, tuple[float | None, ...]]
"""A time in Unix seconds, and the values of that time."""


@dataclass(frozen=True, slots=True)
class _Moment:
    time_s: float
    services: Mapping[str, tuple[tuple[str, ...], Values]]
    """The servers' names, and their quantities, a row for each."""
    crowd: Values | None


class History:
    """One for all viewers. What is unknown is NaN here, and None outside."""

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque(maxlen=KEPT)

    def add(self, sample: Sample, rates: Rates) -> None:
        """A newer sample, and its rates."""
        of = {
            one["name"]: (
                tuple(server["name"] for server in one["servers"]),
                _array([_of_server(one["name"], server, rates) for server in one["servers"]]),
            )
            for one in sample.status.get("services", ())
        }
        crowd = _array([_of_crowd(sample.status["news"], rates)])[0] if "news" in sample.status else None
        self._moments.append(_Moment(sample.time_s, of, crowd))

    def gap(self, time_s: float) -> None:
        """Nothing is known of this time."""
        self._moments.append(_Moment(time_s, {}, None))

    def service(self, name: str, servers: tuple[str, ...], quantity: str) -> list[Point]:
        """A quantity of a service's servers, in their order."""
        column = QUANTITIES.index(quantity)
        return [(moment.time_s, _values(moment, name, servers, column)) for moment in self._moments]

    def crowd(self, *quantities: str) -> list[Point]:
        """Quantities of flash-crowd control."""
        columns = [CROWDS.index(one) for one in quantities]
        return [
            (
                moment.time_s,
                tuple(None if moment.crowd is None else _known(moment.crowd[column]) for column in columns),
            )
            for moment in self._moments
        ]


def _values(moment: _Moment, name: str, servers: tuple[str, ...], column: int) -> tuple[float | None, ...]:
    names, values = moment.services.get(name, ((), None))
    if values is None:
        return (None,) * len(servers)
    if names == servers:
        return tuple(_known(value) for value in values[:, column])
    rows = {one: number for number, one in enumerate(names)}
    return tuple(_known(values[rows[one], column]) if one in rows else None for one in servers)


def _of_server(service: str, server: Mapping[str, Any], rates: Rates) -> list[float | None]:
    r = server["r"]
    return [
        server["ratio"],
        None if isinstance(r, str) else r,
        server["open"],
        rates.server(service, server, "syn"),
        rates.failures(service, server),
    ]


def _of_crowd(news: Mapping[str, Any], rates: Rates) -> list[float | None]:
    sums = [
        view.total([rates.destination(one, key) for one in news["destinations"]])
        for key in ("offered", "admitted", "refused")
    ]
    limit = min((one["limit_per_s"] for one in news["limits"]), default=None)
    return [*sums, limit, None if news["ar_bps"] is None else news["ar_bps"] / 1000]


def _array(rows: list[list[float | None]]) -> Values:
    return np.array(rows, np.float32)  # None becomes NaN


def _known(value: np.float32) -> float | None:
    """A number that JSON can carry, in as few digits as a chart shows."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
