"""What a proxy chooses by (HAProxy's leastconn, nginx's least_conn): of all servers, the fewest connections."""

from __future__ import annotations

import random

from .secondlook import SecondLook


class LeastConnections(SecondLook):
    """Knows every server's open connections, and no weights; servers with equally many are drawn from."""

    def choose(self, source: random.Random) -> int:
        """The server for a new connection, which is open there from now on."""
        fewest = min(self._open.values())
        chosen = source.choice([server for server, count in self._open.items() if count == fewest])
        self._open[chosen] += 1
        return chosen
