"""The power of a few choices: of the servers drawn evenly, a new connection goes to the one with least to do."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from sluice.balance.looks import MOST_LOOKS, NOBODY, SMALL_POOL, sought_idle
from sluice.dataplane.draws import GOLDEN, Draws, lightest
from sluice.dataplane.idle import IdleServers
from sluice.dataplane.memory import Memory
from sluice.dataplane.table import WRAP
from sluice.loops.sweep import SWEEP_S

from .clock import Clock


class SecondLook:
    """Open connections by server, and the draws."""

    looks = MOST_LOOKS
    """At so many servers."""
    seeks_idle = True
    """And at idle ones."""

    def __init__(self, clock: Clock, weights: Mapping[int, int]) -> None:
        self._clock, self._point = clock, 0
        self._open = dict.fromkeys(weights, 0)
        self._refusing = set[int]()
        self._idle = IdleServers(Memory())
        self.weigh(weights)

    def weigh(self, weights: Mapping[int, int]) -> None:
        """Draw by other weights from now on. In a small pool the other server is drawn from the rest, else from all."""
        positive = {server: weight for server, weight in weights.items() if weight > 0}
        others: dict[int, Mapping[int, int]] = {}
        if len(positive) > 1 and len(self._open) <= SMALL_POOL:
            others = {first: {server: positive[server] for server in positive if server != first} for first in positive}
        elif len(positive) > 1:
            others = dict.fromkeys(positive, positive)
        self._draws = Draws(positive, others, shares=sum(positive.values()), looks=self.looks)
        self._sought = sought_idle(positive) if self.seeks_idle else NOBODY

    def choose(self, source: random.Random) -> int:
        """The server for a new connection, which is open there from now on. Nothing in it is random."""
        drawn = self._draws.evenly(self._point)
        self._point = (self._point + 2 * GOLDEN) % WRAP
        first, sought = drawn[0], self._sought
        idle = self._idle.find(0, first, self._open[first], sought) if len(drawn) > 1 else None
        weights, refusing = self._draws.first.weights, self._refusing
        chosen = lightest(drawn, self._open, weights, idle, before_any=sought.before_any, refusing=refusing)
        self._add(chosen, 1)
        return chosen

    def closed(self, server: int, *, by_fin: bool = False) -> None:
        """A RST of an open connection passes, or its server's FIN."""
        self._add(server, -1, by_fin=by_fin)

    def answered(self, server: int, *, by_reset: bool) -> None:
        """A server has answered a SYN, by a SYN-ACK or by a RST."""
        (self._refusing.add if by_reset else self._refusing.discard)(server)

    def vanished(self, server: int, until_s: float) -> None:
        """A connection ended unseen: it counts until the first sweep after its pin is idle."""
        sweep = (math.floor(until_s / SWEEP_S) + 1) * SWEEP_S
        self._clock.after(max(0.0, sweep - self._clock.now), self.closed, server)

    def _add(self, server: int, change: int, *, by_fin: bool = False) -> None:
        self._open[server] += change
        self._idle.note(0, server, self._open[server], by_fin=by_fin)

    def open_now(self) -> dict[int, int]:
        """Open connections as the switch counts them."""
        return dict(self._open)


class TwoLooks(SecondLook):
    """As on a Tofino, but for how it draws."""

    looks = 2
    seeks_idle = False
