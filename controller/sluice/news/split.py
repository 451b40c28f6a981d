"""The two token buckets of a limit: one for all clients, and one for returning clients.

A refused SYN is repeated after a second, and a page needs several connections. If each SYN were admitted by chance, few
pages would be loaded completely. So the switch remembers the clients that it admitted. If the first bucket refuses a
SYN of such a client, the switch tries the second bucket. Together the buckets admit about as many connections as the
limit permits; for an interval they can admit somewhat more (``widest``).
"""

from __future__ import annotations

from dataclasses import dataclass

from .limit import Limit
from .options import NewsOptions
from .requests import Requests

_FADE = 0.7
"""Factor by which the counts of earlier intervals are multiplied in each interval. The rate of returning clients is
thus an average of about three intervals."""

_HEADROOM, _PROBE = 1.25, 0.05
"""The rate of the second bucket is its use times the first number, plus the second number times the limit. The rate
thus exceeds the use, so that the use can grow."""

_NEAR = 0.05
"""While the limit stays the same, the buckets are rewritten only when the rate of either changes by more than this part
of the limit."""


@dataclass(frozen=True, slots=True)
class Split:
    """The settings of both buckets; rates in connections per second, bursts in connections."""

    limit: float
    """The limit on the connections of all clients together."""
    rate: float
    """The rate of the bucket for all clients."""
    burst: float
    returning_rate: float | None = None
    """The rate of the second bucket, for remembered clients; None: no client is remembered."""
    returning_burst: float | None = None


def whole(limit: Limit) -> Split:
    """Return a split without the second bucket: no client is remembered, as in Chen & Heidemann."""
    return Split(limit.rate, limit.rate, limit.burst)


def rates(limit: float, returning: float, share: float) -> tuple[float, float]:
    """Return the rates of both buckets when the second bucket admits ``returning`` connections per second.

    The first bucket gets the rest of the limit, the second at most ``share`` of the limit. The second rate is a little
    above the use of the second bucket, so the sum of both rates can exceed the limit until the next interval, up to
    ``widest``.
    """
    most = limit * share
    used = min(returning, most)
    return limit - used, min(used * _HEADROOM + limit * _PROBE, most)


def widest(share: float) -> float:
    """Return the maximum of the sum of both rates, in parts of the limit; 1.14 for a ``share`` of a half.

    The sum grows with the connections of returning clients until the second bucket reaches its ``share``. With still
    more such connections the sum falls.
    """
    return 1 + min(share, share - (share - _PROBE) / _HEADROOM)


class Splitter:
    """The split of one target's limit. It follows the number of connections that the second bucket admits."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._returned = 0.0
        self._split: Split | None = None

    @property
    def returning(self) -> float:
        """Connections per second that are admitted because their client is remembered."""
        return self._returned / self._seconds if self._seconds > 0 else 0.0

    def adopt(self, split: Split) -> None:
        """Continue from a split that is in the switch."""
        self._split = split
        self._seconds, self._returned = 1.0, max(0.0, split.limit - split.rate)

    def renew(self) -> None:
        """Make the next call of ``split`` return a new split, even if its rates hardly differ from the present ones,
        because the bucket size has changed."""
        self._split = None

    def count(self, requests: Requests, seconds: float) -> None:
        """Add the requests of an interval of ``seconds`` to the average of returning clients."""
        self._seconds = self._seconds * _FADE + seconds
        self._returned = self._returned * _FADE + requests.returning

    def split(self, limit: Limit, options: NewsOptions) -> Split:
        """Return the split for a limit. It is the present split as long as the limit is the same and the rate of
        neither bucket has changed by more than _NEAR."""
        if options.remember_s == 0:
            return whole(limit)
        rate, second = rates(limit.rate, self.returning, options.production.returning_share)
        old = self._split
        if old is not None and old.limit == limit.rate and old.returning_rate is not None:
            change = max(abs(rate - old.rate), abs(second - old.returning_rate))
            if change <= _NEAR * limit.rate:
                return old

        def burst(rate: float) -> float:
            return max(1.0, rate * options.bucket_s)

        self._split = Split(limit.rate, rate, burst(rate), second, burst(second))
        return self._split
