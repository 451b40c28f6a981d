"""A reading in the form that viewers see. Its parts are computed on first use, once for all viewers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from . import charts, view
from .history import History
from .rates import Rates, Sample

_QUANTITIES = {
    "ratio": "ratio",
    "r": "R",
    "open": "open connections",
    "syn": "SYN/s",
    "failures": "failures/s (SYNs without a SYN-ACK)",
}
SERVICE_CHARTS = tuple(_QUANTITIES)
_CROWD = ("offered", "admitted", "refused", "limit")
CROWD_CHARTS = ("crowd", "ar")

Charts = Mapping[str, dict[str, Any]]
"""For each chart, by the chart's name, the ECharts options that define it."""


class Reading:
    """A status with its rates, as rows, lines and charts. All viewers share these objects, which must not be
    changed."""

    def __init__(self, sample: Sample, rates: Rates, history: History) -> None:
        self.sample, self.rates = sample, rates
        self._history = history
        self._servers: dict[str, list[view.Row]] = {}
        self._charts: dict[str, Charts] = {}

    @cached_property
    def head(self) -> str:
        """A line with the switch and the controller's role."""
        return view.head(self.sample.status)

    @cached_property
    def out(self) -> str:
        """What is out of service (`view.out`), in one line."""
        return "; ".join(view.out(self.sample.status))

    @cached_property
    def health(self) -> list[view.Row]:
        """Rows about the switch and the connection to it."""
        return view.health(self.sample.status)

    @cached_property
    def services(self) -> list[view.Row]:
        """Rows of the services."""
        return view.services(self.sample, self.rates)

    @cached_property
    def drops(self) -> list[view.Row]:
        """Rows of the drop reasons."""
        return view.drops(self.sample, self.rates)

    def service(self, name: str | None) -> Mapping[str, Any] | None:
        """Return the status of the service with that name, else that of the first service; None without services."""
        return view.service(self.sample, name)

    def servers(self, service: Mapping[str, Any]) -> list[view.Row]:
        """Return the rows of a service's servers."""
        name = service["name"]
        if name not in self._servers:
            self._servers[name] = view.servers(service, self.rates)
        return self._servers[name]

    def charts(self, service: Mapping[str, Any]) -> Charts:
        """Return the charts of a service."""
        name = service["name"]
        if name not in self._charts:
            names = tuple(str(server["name"]) for server in service["servers"])
            self._charts[name] = {
                key: charts.lines(title, names, self._history.service(name, names, key))
                for key, title in _QUANTITIES.items()
            }
        return self._charts[name]

    @property
    def news(self) -> Mapping[str, Any] | None:
        """The status of flash-crowd control; None if it is not configured."""
        return self.sample.status.get("news")

    @cached_property
    def destinations(self) -> list[view.Row]:
        """Rows of the watched destinations."""
        return [] if self.news is None else view.destinations(self.news, self.rates)

    @cached_property
    def crowd_charts(self) -> Charts:
        """The charts of flash-crowd control."""
        return {
            "crowd": charts.lines("new connections/s", _CROWD, self._history.crowd(*_CROWD)),
            "ar": charts.lines("AR, kbit/s", ["AR"], self._history.crowd("ar")),
        }
