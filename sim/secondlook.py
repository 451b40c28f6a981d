"""The power of a few choices: of the servers drawn evenly, a new connection goes to the one with least to do."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from sluice.balance.looks import MOST_LOOKS, SMALL_POOL
from sluice.dataplane.draws import GOLDEN, Draws, lightest
from sluice.dataplane.table import WRAP
from sluice.loops.sweep import SWEEP_S

from .clock import Clock


class SecondLook:
    """Open connections by server, and the draws."""

    looks = MOST_LOOKS
    """At so many servers."""

    def __init__(self, clock: Clock, weights: Mapping[int, int]) -> None:
        self._clock, self._point = clock, 0
        self._open = dict.fromkeys(weights, 0)
        self.weigh(weights)

    def weigh(self, weights: Mapping[int, int]) -> None:
        """Draw by other weights from now on. In a small pool the other server is drawn from the rest, else from all."""
        positive = {server: weight for server, weight in weights.items() if weight > 0}
        others: dict[int, Mapping[int, int]] = {}
        if len(positive) > 1 and len(weights) <= SMALL_POOL:
            others = {one: {server: positive[server] for server in positive if server != one} for one in positive}
        elif len(positive) > 1:
            others = dict.fromkeys(positive, positive)
        self._draws = Draws(positive, others, shares=sum(positive.values()), looks=self.looks)

    def choose(self, source: random.Random) -> int:
        """The server for a new connection, which is open there from now on. Nothing in it is random."""
        drawn = self._draws.evenly(self._point)
        self._point = (self._point + 2 * GOLDEN) % WRAP
        chosen = lightest(drawn, self._open, self._draws.first.weights)
        self._open[chosen] += 1
        return chosen

    def closed(self, server: int) -> None:
        """A FIN or RST of an open connection passes."""
        self._open[server] -= 1

    def vanished(self, server: int, until_s: float) -> None:
        """A connection ended unseen: it counts until the first sweep after its pin is idle."""
        sweep = (math.floor(until_s / SWEEP_S) + 1) * SWEEP_S
        self._clock.after(max(0.0, sweep - self._clock.now), self.closed, server)

    def open_now(self) -> dict[int, int]:
        """Open connections as the switch counts them."""
        return dict(self._open)


class TwoLooks(SecondLook):
    """As on a Tofino, but for how it draws."""

    looks = 2
