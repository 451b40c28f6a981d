"""Server selection by proxies (HAProxy's leastconn, nginx's least_conn): the server with the fewest open
connections."""

from __future__ import annotations

import random
from collections.abc import Mapping

from .clock import Clock
from .secondlook import SecondLook


class LeastConnections(SecondLook):
    """Selects the server with the fewest open connections, without weights.

    Among servers with equally many connections, it selects the server whose number of connections has been constant for
    the longest time, as HAProxy's tree does (src/lb_fwlc.c). That server probably has the most CPU quota left.
    """

    def __init__(self, clock: Clock, weights: Mapping[int, int]) -> None:
        super().__init__(clock, weights)
        self._turns = 0
        self._changed = dict.fromkeys(weights, 0)

    def choose(self, source: random.Random) -> int:
        """Return the server for a new connection, and count the connection there."""
        chosen = min(self._open, key=lambda server: (self._open[server], self._changed[server]))
        self._open[chosen] += 1
        self._change(chosen)
        return chosen

    def closed(self, server: int, *, by_fin: bool = False) -> None:
        """Record the end of an open connection, and make the server the last choice among servers with equally many
        connections."""
        super().closed(server, by_fin=by_fin)
        self._change(server)

    def _change(self, server: int) -> None:
        self._turns += 1
        self._changed[server] = self._turns
