"""Learns how long a connection must be silent to count as idle, from the pauses within a service's responses.

Packets do not show whether a response has ended or only pauses. So the switch measures, for each acknowledged response,
the pause before its last part, and counts the pauses in classes of powers of two (p4src/v1model/closing_cells.p4).
Azuma et al. close connections inside the server, which can see that they are idle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sluice.names import PAUSE_LENGTH_BITS

from .columns import Numbers

DEFAULT_AGE_S = 10.0
"""The age, in seconds, until enough responses have been measured: twice the longest pause expected of a slow page."""
LEAST_AGE_S = 1.0
"""The least learned age, in seconds. Even if many responses had no long pause, the next response may have one."""
LENGTHS = 1 << PAUSE_LENGTH_BITS
"""Number of classes. Class 0 has the pauses below one tick, class n those below 2^n ticks (n = 1 to 14), the last class
longer ones."""
ENOUGH = 1000
"""The least number of measured responses for which the age may be below the default. If none of 1,000 measured
responses has a pause above a certain length, fewer than 3 in 1,000 of all responses have one, with 95 % confidence
(rule of three)."""
MARGIN = 2.0
"""Ratio of the age to the upper bound of the longest pause's class."""
HALVED_S = 3600.0
"""Half-life of the counts, in seconds."""
FORGOTTEN = 1 / 16
"""A class of pauses is ignored once its weight is below this value: a single pause counts for four hours."""
CONTROLS = 8
"""One in this many connections (those whose flow number is a multiple of it) is a control: it is not closed before the
default age, unless an age is configured. Otherwise, pauses that grow longer than a learned age would be cut off and
never be measured."""


class PauseAge:
    """Learns the age at which the connections of one service count as idle, each time the switch has been read."""

    def __init__(self, tick_s: float) -> None:
        self._upper_s = tick_s * 2.0 ** np.arange(LENGTHS)
        """The upper bound of each class of pauses, in seconds. The last class also counts longer pauses."""
        self._weights = np.zeros(LENGTHS)
        self._before: dict[int, Numbers] = {}
        self._read_s: float | None = None

    @property
    def responses(self) -> float:
        """The number of measured responses; older ones have less weight."""
        return float(self._weights.sum())

    @property
    def age_s(self) -> float:
        """The age: seconds of silence after which a connection is idle."""
        classes = np.flatnonzero(self._weights[1:] >= FORGOTTEN)
        longest_s = float(self._upper_s[classes[-1] + 1]) if classes.size else 0.0
        return max(LEAST_AGE_S if self.responses >= ENOUGH else DEFAULT_AGE_S, MARGIN * longest_s)

    def observe(self, now_s: float, counts: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """Add ``counts``: LENGTHS cumulative 32-bit counts per server. For a new server, all counts are added.

        Returns each server's responses since the previous reading.
        """
        elapsed_s = 0.0 if self._read_s is None else max(0.0, now_s - self._read_s)
        self._read_s = now_s
        self._weights *= 0.5 ** (elapsed_s / HALVED_S)
        responses: dict[int, int] = {}
        for server, cells in counts.items():
            now = np.array(cells, np.int64)
            increase = (now - self._before.get(server, 0)) % (1 << 32)
            # A count that went back shows that the switch restarted and counts from zero.
            increase = np.where(increase < 1 << 31, increase, now)
            self._weights += increase
            self._before[server] = now
            responses[server] = int(increase.sum())
        return responses
