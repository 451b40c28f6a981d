"""The balancer's ledger over the measurement window."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.balance.counts import CounterReset, Counts
from sluice.balance.window import Window


class LedgerWindow:
    """Cumulative counts of each server in, their sums over the last few intervals out."""

    def __init__(self, intervals: int) -> None:
        self._intervals = intervals
        self._windows: dict[int, Window] = {}
        self._readings: dict[int, Counts] = {}

    def resize(self, intervals: int) -> None:
        """Keep the newest ``intervals`` from now on."""
        self._intervals = intervals
        for window in self._windows.values():
            window.resize(intervals)

    def rebase(self) -> None:
        """The switch's counters may have been reset: the next reading is a new beginning."""
        self._readings.clear()

    def push(self, cumulative: Mapping[int, Counts]) -> None:
        """Take in a reading. A server's first is only a base; one that is not read any more is forgotten."""
        self._windows = {i: self._windows.get(i) or Window(self._intervals) for i in cumulative}
        for server, reading in cumulative.items():
            try:
                difference = reading.since(self._readings.get(server, reading))
            except CounterReset:
                # The switch restarted between two readings: what it counted since is all there is.
                difference = reading
            self._windows[server].push(difference)
        self._readings = dict(cumulative)

    @property
    def sums(self) -> dict[int, Counts]:
        """By server."""
        return {server: window.total for server, window in self._windows.items()}
