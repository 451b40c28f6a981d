"""The measurements of the last minutes, for every service and for flash-crowd control; the charts show them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import view
from .rates import Rates, Sample

MOST_SAMPLES = 150
"""The largest number of samples: five minutes at two seconds per sample."""
QUANTITIES = ("ratio", "r", "open", "syn", "failures")
"""A server's quantities: its ratio (its share of the service's new connections), R over the measurement window
(retransmitted SYNs per answered connection), open connections, SYNs/s, and SYNs/s without a SYN-ACK."""
CROWDS = ("offered", "admitted", "refused", "limit", "ar")
"""Quantities of flash-crowd control: requests per second (offered, admitted, refused) of all destinations together, the
lowest limit in connections per second, and the rate AR of the fastest responses in kbit/s."""

Values = NDArray[np.float32]
Point = tuple[float, tuple[float | None, ...]]
"""A Unix time in seconds, and values at that time."""


@dataclass(frozen=True, slots=True)
class _Moment:
    time_s: float
    services: Mapping[str, tuple[tuple[str, ...], Values]]
    """For each service: the names of its servers, and one row of quantities per server."""
    crowd: Values | None


class History:
    """The samples of the last minutes, shared by all viewers. Unknown values are stored as NaN and returned as None."""

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque(maxlen=MOST_SAMPLES)

    def add(self, sample: Sample, rates: Rates) -> None:
        """Append a sample and its rates."""
        services = {
            service["name"]: (
                tuple(server["name"] for server in service["servers"]),
                _array([_of_server(service["name"], server, rates) for server in service["servers"]]),
            )
            for service in sample.status.get("services", ())
        }
        crowd = _array([_of_crowd(sample.status["news"], rates)])[0] if "news" in sample.status else None
        self._moments.append(_Moment(sample.time_s, services, crowd))

    def gap(self, time_s: float) -> None:
        """Append a time without values, because the reading at that time failed."""
        self._moments.append(_Moment(time_s, {}, None))

    def service(self, name: str, servers: tuple[str, ...], quantity: str) -> list[Point]:
        """Return a quantity of a service's servers over time: for each sample a value per server, in the order of
        ``servers``; None where the sample has none."""
        column = QUANTITIES.index(quantity)
        return [(moment.time_s, _values(moment, name, servers, column)) for moment in self._moments]

    def crowd(self, *quantities: str) -> list[Point]:
        """Return quantities of flash-crowd control over time."""
        columns = [CROWDS.index(quantity) for quantity in quantities]
        return [
            (
                moment.time_s,
                tuple(None if moment.crowd is None else _finite(moment.crowd[column]) for column in columns),
            )
            for moment in self._moments
        ]


def _values(moment: _Moment, name: str, servers: tuple[str, ...], column: int) -> tuple[float | None, ...]:
    names, values = moment.services.get(name, ((), None))
    if values is None:
        return (None,) * len(servers)
    if names == servers:
        return tuple(_finite(value) for value in values[:, column])
    rows = {server: number for number, server in enumerate(names)}
    return tuple(_finite(values[rows[server], column]) if server in rows else None for server in servers)


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
        view.total([rates.destination(destination, key) for destination in news["destinations"]])
        for key in ("offered", "admitted", "refused")
    ]
    limit = min((limit["limit_per_s"] for limit in news["limits"]), default=None)
    return [*sums, limit, None if news["ar_bps"] is None else news["ar_bps"] / 1000]


def _array(rows: list[list[float | None]]) -> Values:
    return np.array(rows, np.float32)  # None becomes NaN


def _finite(value: np.float32) -> float | None:
    """Return a number for JSON, with as many digits as a chart shows; None for NaN or infinity."""
    return float(f"{value:.5g}") if np.isfinite(value) else None
