"""Learns how long a connection must be silent to count as idle, from pauses within a service's responses.

Packets do not show whether a response has ended or only pauses. So the switch counts, for each acknowledged response,
the pause before its last part, in classes of powers of two (p4src/v1model/closing_cells.p4). Azuma et al. close
connections inside the server, which can see that they are idle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sluice.names import PAUSE_LENGTH_BITS

from .columns import Numbers

DEFAULT_AGE_S = 10.0
"""The age in seconds until enough responses were measured: twice the pause that a slow page may have."""
LEAST_AGE_S = 1.0
"""The least learned age, in seconds: even without any long pause among many responses the next one may have one."""
LENGTHS = 1 << PAUSE_LENGTH_BITS
"""Number of classes: pauses below one tick, below 2^n ticks for n = 1 to 14, and longer ones."""
ENOUGH = 1000
"""Least number of responses for an age below the default. If none of them has a longer pause, fewer than 3 in 1,000 do,
with 95 % confidence (rule of three)."""
MARGIN = 2.0
"""Ratio of the age to the upper bound of the longest pause."""
HALVED_S = 3600.0
"""Half-life of the counts, in seconds."""
FORGOTTEN = 1 / 16
"""A pause class is ignored once its weight falls below this: a single pause counts for four hours."""
CONTROLS = 8
"""One in this many connections, by their numbers, is not closed before the default age. Otherwise pauses that grow
longer than a learned age would be cut off and never be measured."""


class PauseAge:
    """Learns one service's age, reading by reading."""

    def __init__(self, tick_s: float) -> None:
        self._upper_s = tick_s * 2.0 ** np.arange(LENGTHS)
        """The upper bound of each class in seconds; that of the last class is twice its lower bound."""
        self._weights = np.zeros(LENGTHS)
        self._before: dict[int, Numbers] = {}
        self._read_s: float | None = None

    @property
    def responses(self) -> float:
        """The weighted number of measured responses."""
        return float(self._weights.sum())

    @property
    def age_s(self) -> float:
        """Seconds of silence after which a connection is idle."""
        classes = np.flatnonzero(self._weights[1:] >= FORGOTTEN)
        longest_s = float(self._upper_s[classes[-1] + 1]) if classes.size else 0.0
        return max(LEAST_AGE_S if self.responses >= ENOUGH else DEFAULT_AGE_S, MARGIN * longest_s)

    def observe(self, now_s: float, counts: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """Add ``counts``: LENGTHS cumulative 32-bit counts per server. For a new server all of them are added.

        Returns each server's responses since the previous reading.
        """
        elapsed_s = 0.0 if self._read_s is None else max(0.0, now_s - self._read_s)
        self._read_s = now_s
        self._weights *= 0.5 ** (elapsed_s / HALVED_S)
        responses: dict[int, int] = {}
        for server, cells in counts.items():
            now = np.array(cells, np.int64)
            increase = (now - self._before.get(server, 0)) % (1 << 32)
            # A count that went back is that of a switch that restarted from zero.
            increase = np.where(increase < 1 << 31, increase, now)
            self._weights += increase
            self._before[server] = now
            responses[server] = int(increase.sum())
        return responses
