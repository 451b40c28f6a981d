"""The second look of the switch (p4src/stages/second_look.p4): of two servers drawn evenly, the one with less to do."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from sluice.loops.sweep import SWEEP_S
from sluice.switch.balance import SMALL_POOL

from .choice import Choice, Points
from .clock import Clock


class SecondLook:
    """Open connections by server, and the draws of both."""

    def __init__(self, clock: Clock, weights: Mapping[int, int]) -> None:
        self._clock, self._points = clock, Points()
        self._open = dict.fromkeys(weights, 0)
        self.weigh(weights)

    def weigh(self, weights: Mapping[int, int]) -> None:
        """Draw by other weights from now on. In a small pool the other server is drawn from the rest, else from all."""
        self._weights, self._all = dict(weights), Choice(weights)
        self._others: dict[int, Choice] = {}
        positive = sum(weight > 0 for weight in weights.values())
        if positive > 1 and len(weights) <= SMALL_POOL:
            for one in weights:
                rest = {server: weight for server, weight in weights.items() if server != one}
                if any(rest.values()):
                    self._others[one] = Choice(rest)
        elif positive > 1:
            self._others = dict.fromkeys(weights, self._all)

    def choose(self, source: random.Random) -> int:
        """The server for a new connection, which is open there from now on. Nothing in it is random."""
        chosen = first = self._all.at(self._points.next())
        point = self._points.next()
        if (others := self._others.get(first)) is not None:
            other = others.at(point)
            if other != first and self._lighter(first, other):
                chosen = other
        self._open[chosen] += 1
        return chosen

    def _lighter(self, first: int, other: int) -> bool:
        # As control Lighter has it: by an eighth at least, in whole numbers.
        work = (self._open[first] + 1) * self._weights[other]
        other_work = (self._open[other] + 1) * self._weights[first]
        return other_work + (other_work >> 3) < work

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
