"""How long a connection is silent before it is idle: learned from pauses within a service's responses.

Nothing in the packets tells a response that pauses from one that has ended. So the switch counts, for each response
that was acknowledged, the pause in front of its last part, by powers of two (p4src/v1model/closing_cells.p4). Azuma et
al. close connections that are known to be idle, in the server itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sluice.names import PAUSE_LENGTH_BITS

from .columns import Numbers

DEFAULT_AGE_S = 10.0
"""The age before enough was seen, in seconds: twice the pause that a slow page may have."""
LEAST_AGE_S = 1.0
"""No age that is learned is below this: half of a million responses that are seen say little of the next one."""
LENGTHS = 1 << PAUSE_LENGTH_BITS
"""Counts of a server: of pauses below one tick, and below 2^n ticks for n = 1 to 14; the last are longer."""
ENOUGH = 1000
"""So many responses are to be seen before an age is below the default: with none of them above a pause, fewer than 3
in 1,000 are, by 95 % (the rule of three)."""
MARGIN = 2.0
"""The age is so many times what the longest pause may have been."""
HALVED_S = 3600.0
"""What was seen counts half after an hour."""
FORGOTTEN = 1 / 16
"""A single pause counts until its weight is below this: four hours."""
CONTROLS = 8
"""Of so many connections, by their numbers, one is closed by the default at the earliest: otherwise a pause that
becomes longer than a learned age would be cut off, and never seen."""


class PauseAge:
    """Learns for one service, from reading to reading."""

    def __init__(self, tick_s: float) -> None:
        self._upper_s = tick_s * 2.0 ** np.arange(LENGTHS)
        """What pauses of each length are below, in seconds (the last are taken for twice as long as they are at
        least)."""
        self._weights = np.zeros(LENGTHS)
        self._before: dict[int, Numbers] = {}
        self._read_s: float | None = None

    @property
    def responses(self) -> float:
        """Those that were seen, as far as they still count."""
        return float(self._weights.sum())

    @property
    def age_s(self) -> float:
        """A connection that has been silent for so many seconds is idle."""
        seen = np.flatnonzero(self._weights[1:] >= FORGOTTEN)
        longest_s = float(self._upper_s[seen[-1] + 1]) if seen.size else 0.0
        return max(LEAST_AGE_S if self.responses >= ENOUGH else DEFAULT_AGE_S, MARGIN * longest_s)

    def observe(self, now_s: float, counts: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """Take ``counts``: LENGTHS cumulative counts of 32 bits, by server. A server that is new counts as a whole.

        Returns the responses of each server since the reading before.
        """
        past_s = 0.0 if self._read_s is None else max(0.0, now_s - self._read_s)
        self._read_s = now_s
        self._weights *= 0.5 ** (past_s / HALVED_S)
        seen: dict[int, int] = {}
        for server, cells in counts.items():
            now = np.array(cells, np.int64)
            more = (now - self._before.get(server, 0)) % (1 << 32)
            # A count that went back is that of a switch that began anew.
            more = np.where(more < 1 << 31, more, now)
            self._weights += more
            self._before[server] = now
            seen[server] = int(more.sum())
        return seen
