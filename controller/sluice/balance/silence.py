"""Silent servers: they receive connection requests, but send no SYN-ACK."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .counts import Counts
from .options import LARGEST

SYNS_A_CONNECTION = 7
"""Number of SYNs that a client sends for a connection which no server answers (Linux: tcp_syn_retries = 6)."""


class SilenceTracker:
    """Counts the connections to each server since its last SYN-ACK. The interval with that SYN-ACK does not count."""

    def __init__(self) -> None:
        self._since: dict[int, Counts] = {}

    def adopt(self, servers: Collection[int]) -> None:
        """Count these servers as silent until their next SYN-ACK, independently of the threshold."""
        self._since |= dict.fromkeys(servers, Counts(syn=LARGEST, reset=LARGEST))

    def observe(self, differences: Mapping[int, Counts]) -> None:
        """Add the counts of one interval. A server that sent a SYN-ACK in it starts again at 0; a server that
        ``differences`` lacks is forgotten."""
        self._since = {
            server: Counts() if counts.synack or counts.synack_again else self._since.get(server, Counts()) + counts
            for server, counts in differences.items()
        }

    def restart(self, silent: Collection[int]) -> None:
        """Discard the counts of all servers except the ``silent`` ones."""
        self._since = {server: counts for server, counts in self._since.items() if server in silent}

    def silent(self, threshold: int) -> set[int]:
        """Return the servers with at least ``threshold`` connections since their last SYN-ACK."""
        return {server for server, counts in self._since.items() if connections(counts) >= threshold}


def connections(unanswered: Counts) -> int:
    """Return the least number of connections that can have caused SYNs without any SYN-ACK.

    A client sends up to SYNS_A_CONNECTION SYNs for one connection. If the server resets the connection, the client
    sends only one SYN.
    """
    refused = min(unanswered.reset, unanswered.syn)
    return refused - (refused - unanswered.syn) // SYNS_A_CONNECTION
