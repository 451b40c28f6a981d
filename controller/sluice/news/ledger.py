"""The balancer's ledger over the measurement window."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sluice.balance.counts import CELL_BITS, Counts

_Cells = NDArray[np.int64]
"""A row a server, a column a cell of the ledger."""
_RESET = 1 << CELL_BITS - 1
"""A counter that moved by so much was reset (see balance.counts)."""


class LedgerWindow:
    """Cumulative counts of each server in, their sums over the last few intervals out; all servers at once."""

    def __init__(self, intervals: int) -> None:
        self._servers: list[int] = []
        self._ring: deque[_Cells] = deque(maxlen=intervals)
        self._reading = _rows([])
        self._based = np.zeros(0, bool)
        """Whose last reading there is to subtract."""

    def resize(self, intervals: int) -> None:
        """Keep the newest ``intervals`` from now on."""
        self._ring = deque(self._ring, maxlen=intervals)

    def rebase(self) -> None:
        """The switch's counters may have been reset: the next reading is a new beginning."""
        self._based[:] = False

    def push(self, cumulative: Mapping[int, Counts]) -> None:
        """Take in a reading. A server's first is only a base; one that is not read any more is forgotten."""
        if list(cumulative) != self._servers:
            self._arrange(list(cumulative))
        reading = _rows([counts.cells for counts in cumulative.values()])
        differences = (reading - self._reading) % (1 << CELL_BITS)
        # Where the switch restarted between two readings, what it counted since is all there is.
        reset = (differences >= _RESET).any(axis=1)
        differences[reset] = reading[reset]
        differences[~self._based] = 0
        self._ring.append(differences)
        self._reading, self._based = reading, np.ones(len(reading), bool)

    def _arrange(self, servers: list[int]) -> None:
        """Bring the rows into the order of ``servers``; new ones are empty."""
        rows = {server: row for row, server in enumerate(self._servers)}
        kept = [row for row, server in enumerate(servers) if server in rows]
        before = [rows[servers[row]] for row in kept]

        def arranged(old: _Cells) -> _Cells:
            new = np.zeros((len(servers), old.shape[1]), np.int64)
            new[kept] = old[before]
            return new

        based = np.zeros(len(servers), bool)
        based[kept] = self._based[before]
        self._ring = deque(map(arranged, self._ring), maxlen=self._ring.maxlen)
        self._servers, self._reading, self._based = servers, arranged(self._reading), based

    @property
    def sums(self) -> dict[int, Counts]:
        """By server."""
        whole = sum(self._ring, start=_rows([Counts().cells] * len(self._servers)))
        return {server: Counts(*row) for server, row in zip(self._servers, whole.tolist(), strict=True)}


def _rows(cells: Sequence[tuple[int, ...]]) -> _Cells:
    return np.array(cells, np.int64).reshape(len(cells), len(Counts().cells))
