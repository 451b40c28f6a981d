"""Silent servers: SYNs go in, no SYN-ACK comes out."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .counts import Counts


class SilenceTracker:
    """Counts the SYNs of each server since it last answered anything, whole intervals at a time."""

    def __init__(self) -> None:
        self._unanswered: dict[int, int] = {}

    def observe(self, differences: Mapping[int, Counts]) -> None:
        """Take in one interval."""
        for server, counts in differences.items():
            if counts.synack or counts.synack_again:
                self._unanswered[server] = 0
            else:
                self._unanswered[server] = self._unanswered.get(server, 0) + counts.syn
        for server in set(self._unanswered) - set(differences):
            del self._unanswered[server]

    def begin_anew(self, silent: Collection[int]) -> None:
        """What was counted is no evidence, but of servers that are known to be ``silent`` already."""
        self._unanswered = {server: many for server, many in self._unanswered.items() if server in silent}

    def silent(self, threshold: int) -> set[int]:
        """Servers with at least ``threshold`` SYNs and no answer since."""
        return {server for server, unanswered in self._unanswered.items() if unanswered >= threshold}


def is_panic(silent: Collection[int], pool: Collection[int], threshold: float) -> bool:
    """True when more than ``threshold`` of the pool is silent: then ejecting would do more harm than good."""
    return bool(pool) and len(silent) > threshold * len(pool)
