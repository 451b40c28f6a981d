"""The servers' ledger over the measurement window."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sluice.balance.counts import CELL_BITS, Counts

_Cells = NDArray[np.int64]
"""A row for each server, a column for each cell of the ledger."""
_RESET = 1 << CELL_BITS - 1
"""A counter that increased by this much or more was reset (see balance.counts)."""


class LedgerWindow:
    """Turns cumulative counts of all servers into sums over the last intervals."""

    def __init__(self, intervals: int) -> None:
        self._servers: list[int] = []
        self._ring: deque[_Cells] = deque(maxlen=intervals)
        self._reading = _rows([])
        self._based = np.zeros(0, bool)
        """The servers, by row, that have an earlier reading to subtract."""

    def resize(self, intervals: int) -> None:
        """Keep the newest ``intervals`` intervals from now on."""
        self._ring = deque(self._ring, maxlen=intervals)

    def rebase(self) -> None:
        """Take the next reading as a base: the switch's counters may have been reset."""
        self._based[:] = False

    def push(self, cumulative: Mapping[int, Counts]) -> None:
        """Take in a reading, by server. A server's first reading is only a base; a server that is no longer read is
        dropped."""
        if list(cumulative) != self._servers:
            self._arrange(list(cumulative))
        reading = _rows([counts.cells for counts in cumulative.values()])
        differences = (reading - self._reading) % (1 << CELL_BITS)
        # After a reset the reading itself is what was counted since.
        reset = (differences >= _RESET).any(axis=1)
        differences[reset] = reading[reset]
        differences[~self._based] = 0
        self._ring.append(differences)
        self._reading, self._based = reading, np.ones(len(reading), bool)

    def _arrange(self, servers: list[int]) -> None:
        """Bring the rows into the order of ``servers``; new ones are empty."""
        rows = {server: row for row, server in enumerate(self._servers)}
        staying = [row for row, server in enumerate(servers) if server in rows]
        before = [rows[servers[row]] for row in staying]

        def arranged(old: _Cells) -> _Cells:
            new = np.zeros((len(servers), old.shape[1]), np.int64)
            new[staying] = old[before]
            return new

        based = np.zeros(len(servers), bool)
        based[staying] = self._based[before]
        self._ring = deque(map(arranged, self._ring), maxlen=self._ring.maxlen)
        self._servers, self._reading, self._based = servers, arranged(self._reading), based

    @property
    def sums(self) -> dict[int, Counts]:
        """The counts over the window, by server."""
        totals = sum(self._ring, start=_rows([Counts().cells] * len(self._servers)))
        return {server: Counts(*row) for server, row in zip(self._servers, totals.tolist(), strict=True)}


def _rows(cells: Sequence[tuple[int, ...]]) -> _Cells:
    return np.array(cells, np.int64).reshape(len(cells), len(Counts().cells))
