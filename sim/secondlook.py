"""The second look (power of several choices): the switch draws several servers by their weights, and a new connection
goes to the least loaded of the drawn servers."""

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
    """Counts open connections by server and selects servers for new ones."""

    looks = MOST_LOOKS
    """Number of servers drawn for each new connection."""
    seeks_idle = True
    """Whether the switch also searches for an idle server among those that were not drawn."""

    def __init__(self, clock: Clock, weights: Mapping[int, int]) -> None:
        self._clock, self._point = clock, 0
        self._open = dict.fromkeys(weights, 0)
        self._refusing = set[int]()
        self._idle = IdleServers(Memory())
        self.weigh(weights)

    def weigh(self, weights: Mapping[int, int]) -> None:
        """Draw servers by these weights from now on.

        In a small pool, the second and further servers are drawn from all servers except the first one; in a large
        pool, from all servers.
        """
        positive = {server: weight for server, weight in weights.items() if weight > 0}
        others: dict[int, Mapping[int, int]] = {}
        if len(positive) > 1 and len(self._open) <= SMALL_POOL:
            others = {first: {server: positive[server] for server in positive if server != first} for first in positive}
        elif len(positive) > 1:
            others = dict.fromkeys(positive, positive)
        self._draws = Draws(positive, others, shares=sum(positive.values()), looks=self.looks)
        self._sought = sought_idle(positive) if self.seeks_idle else NOBODY

    def choose(self, source: random.Random) -> int:
        """Return the server for a new connection, and count the connection there. ``source`` is not used: successive
        connections take evenly spread points of the draw."""
        drawn = self._draws.evenly(self._point)
        self._point = (self._point + 2 * GOLDEN) % WRAP
        first, sought = drawn[0], self._sought
        idle = self._idle.find(0, first, self._open[first], sought) if len(drawn) > 1 else None
        weights, refusing = self._draws.first.weights, self._refusing
        chosen = lightest(drawn, self._open, weights, idle, before_any=sought.before_any, refusing=refusing)
        self._add(chosen, 1)
        return chosen

    def closed(self, server: int, *, by_fin: bool = False) -> None:
        """Record the end of an open connection. ``by_fin``: the server's FIN has ended it."""
        self._add(server, -1, by_fin=by_fin)

    def answered(self, server: int, *, by_reset: bool) -> None:
        """Record that a server has answered a SYN, by a SYN-ACK or by a RST."""
        (self._refusing.add if by_reset else self._refusing.discard)(server)

    def vanished(self, server: int, until_s: float) -> None:
        """Record a connection that ended without a packet at the switch. The connection counts as open until the first
        sweep after its pin (its entry in the table) expires at ``until_s``."""
        sweep = (math.floor(until_s / SWEEP_S) + 1) * SWEEP_S
        self._clock.after(max(0.0, sweep - self._clock.now), self.closed, server)

    def _add(self, server: int, change: int, *, by_fin: bool = False) -> None:
        self._open[server] += change
        self._idle.note(0, server, self._open[server], by_fin=by_fin)

    def open_now(self) -> dict[int, int]:
        """Return the open connections by server, as the switch counts them."""
        return dict(self._open)


class TwoLooks(SecondLook):
    """The second look as on a Tofino, with two servers per connection and without a search for idle servers. But a
    Tofino draws servers by a hash of the connection, and this model draws them at evenly spread points."""

    looks = 2
    seeks_idle = False
