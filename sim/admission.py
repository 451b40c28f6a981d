"""Admission of requests at the switch: counters and token buckets by destination, as in the P4 stage `destinations`."""

from __future__ import annotations

import math

from sluice.tokenbucket import TokenBucket


class Admission:
    """Counters and two token buckets of one destination: one for all clients, one for clients that were admitted
    before."""

    def __init__(self, remember_s: float = 0.0) -> None:
        """``remember_s``: seconds for which a client counts as returning after its last SYN that was admitted, or that
        the bucket for returning clients refused; 0: no client counts as returning."""
        self.offered = self.admitted = self.refused = self.returning = 0
        self._remember_s = remember_s
        self._common_bucket: TokenBucket | None = None
        self._returning_bucket: TokenBucket | None = None
        self._clients: dict[int, float] = {}

    def set(
        self, now_s: float, all_clients: tuple[float, float] | None, returning: tuple[float, float] | None = None
    ) -> None:
        """Set rate (per second) and burst of both buckets.

        None for ``all_clients`` admits every SYN; None for ``returning`` gives returning clients no bucket of their
        own. A bucket whose parameters change begins full; a bucket whose parameters stay the same keeps its tokens.
        """
        self._common_bucket = _changed(self._common_bucket, now_s, all_clients)
        self._returning_bucket = _changed(self._returning_bucket, now_s, returning)

    def request(self, now_s: float, client: int, *, refused: bool = False, pinned: bool = False) -> bool:
        """Count a client's SYN; return whether the switch forwards it.

        ``refused``: the service's own bucket has refused the SYN. ``pinned``: the connection of this SYN already has a
        pin (an entry in the connection table), so the SYN is a retransmission. The switch forwards it in any case and
        does not count a further connection.
        """
        self.offered += 1
        passes, returns = not refused and (self._common_bucket is None or self._common_bucket.take(now_s)), False
        if self._remember_s and not refused:
            if not passes and self._returning_bucket is not None and self._is_returning(now_s, client):
                passes, returns = self._returning_bucket.take(now_s), True
            if passes or returns:
                self._clients[client] = now_s
        if pinned:
            return True
        if passes:
            self.admitted += 1
            self.returning += returns
        else:
            self.refused += 1
        return passes

    def _is_returning(self, now_s: float, client: int) -> bool:
        return self._clients.get(client, -math.inf) >= now_s - self._remember_s


def _changed(bucket: TokenBucket | None, now_s: float, to: tuple[float, float] | None) -> TokenBucket | None:
    if to is None:
        return None
    return bucket if bucket is not None and (bucket.rate, bucket.burst) == to else TokenBucket(now_s, *to)
