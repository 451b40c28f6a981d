"""A reading as viewers see it: made when the first of them wants it, and once for all."""

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
"""Options by chart."""


class Shown:
    """Whoever takes something of it does not change it."""

    def __init__(self, sample: Sample, rates: Rates, history: History) -> None:
        self.sample, self.rates = sample, rates
        self._history = history
        self._servers: dict[str, list[view.Row]] = {}
        self._charts: dict[str, Charts] = {}

    @cached_property
    def head(self) -> str:
        """See view."""
        return view.head(self.sample.status)

    @cached_property
    def out(self) -> str:
        """See view; in one line."""
        return "; ".join(view.out(self.sample.status))

    @cached_property
    def health(self) -> list[view.Row]:
        """See view."""
        return view.health(self.sample.status)

    @cached_property
    def services(self) -> list[view.Row]:
        """See view."""
        return view.services(self.sample, self.rates)

    @cached_property
    def drops(self) -> list[view.Row]:
        """See view."""
        return view.drops(self.sample, self.rates)

    def service(self, name: str | None) -> Mapping[str, Any] | None:
        """See view."""
        return view.service(self.sample, name)

    def servers(self, one: Mapping[str, Any]) -> list[view.Row]:
        """The rows of a service's servers."""
        name = one["name"]
        if name not in self._servers:
            self._servers[name] = view.servers(one, self.rates)
        return self._servers[name]

    def charts(self, one: Mapping[str, Any]) -> Charts:
        """A service's."""
        name = one["name"]
        if name not in self._charts:
            names = tuple(str(server["name"]) for server in one["servers"])
            self._charts[name] = {
                key: charts.lines(title, names, self._history.service(name, names, key))
                for key, title in _QUANTITIES.items()
            }
        return self._charts[name]

    @property
    def news(self) -> Mapping[str, Any] | None:
        """Flash-crowd control's part of the status, where there is one."""
        return self.sample.status.get("news")

    @cached_property
    def destinations(self) -> list[view.Row]:
        """See view."""
        return [] if self.news is None else view.destinations(self.news, self.rates)

    @cached_property
    def crowd_charts(self) -> Charts:
        """Of flash-crowd control."""
        return {
            "crowd": charts.lines("new connections/s", _CROWD, self._history.crowd(*_CROWD)),
            "ar": charts.lines("AR, kbit/s", ["AR"], self._history.crowd("ar")),
        }
