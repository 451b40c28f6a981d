"""What a proxy chooses by (HAProxy's leastconn, nginx's least_conn): of all servers, the fewest connections."""

from __future__ import annotations

import random
from collections.abc import Mapping

from .clock import Clock
from .secondlook import SecondLook


class LeastConnections(SecondLook):
    """Knows every server's open connections, and no weights. Of servers with equally many the one takes a connection
    whose number has not changed for longest, as in HAProxy's tree (src/lb_fwlc.c): its CPU quota is the fullest.
    """

    def __init__(self, clock: Clock, weights: Mapping[int, int]) -> None:
        super().__init__(clock, weights)
        self._turns = 0
        self._changed = dict.fromkeys(weights, 0)

    def choose(self, source: random.Random) -> int:
        """The server for a new connection, which is open there from now on."""
        chosen = min(self._open, key=lambda server: (self._open[server], self._changed[server]))
        self._open[chosen] += 1
        self._change(chosen)
        return chosen

    def closed(self, server: int, *, by_fin: bool = False) -> None:
        """See SecondLook."""
        super().closed(server, by_fin=by_fin)
        self._change(server)

    def _change(self, server: int) -> None:
        self._turns += 1
        self._changed[server] = self._turns
