"""The counts of all servers over the measurement window."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sluice.balance.counts import CELL_BITS, Counts

_Cells = NDArray[np.int64]
"""Counts with a row for each server, and a column for each cell of a server's ledger in the switch."""
_RESET = 1 << CELL_BITS - 1
"""A counter that increased by this much or more between two readings was reset (as in balance.counts)."""


class LedgerWindow:
    """Converts cumulative counts of all servers to sums over the last intervals."""

    def __init__(self, intervals: int) -> None:
        self._servers: list[int] = []
        self._ring: deque[_Cells] = deque(maxlen=intervals)
        self._reading = _rows([])
        self._based = np.zeros(0, bool)
        """For each row, whether the server has an earlier reading to subtract."""

    def resize(self, intervals: int) -> None:
        """Change the length of the window to ``intervals``; the newest intervals stay."""
        self._ring = deque(self._ring, maxlen=intervals)

    def rebase(self) -> None:
        """Use the next reading only as a base for later differences, since the switch's counters may have been
        reset."""
        self._based[:] = False

    def push(self, cumulative: Mapping[int, Counts]) -> None:
        """Add a reading, by server number. A server's first reading is only a base. A server that is no longer read is
        dropped."""
        if list(cumulative) != self._servers:
            self._arrange(list(cumulative))
        reading = _rows([counts.cells for counts in cumulative.values()])
        differences = (reading - self._reading) % (1 << CELL_BITS)
        # After a reset, the reading itself contains everything that was counted since the reset.
        reset = (differences >= _RESET).any(axis=1)
        differences[reset] = reading[reset]
        differences[~self._based] = 0
        self._ring.append(differences)
        self._reading, self._based = reading, np.ones(len(reading), bool)

    def _arrange(self, servers: list[int]) -> None:
        """Reorder the rows to the order of ``servers``. Rows of new servers are 0."""
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
