"""A limit shared by strangers and returning clients: what the switch's two buckets are to be set to.

A refused SYN comes back after a second, and a page is several connections: drawing lots anew each time admits few
visits whole. The switch therefore remembers whom it admitted. A SYN that the first bucket, open to anybody, refuses
gets a second chance in the bucket for returning clients. The limit is held by what both admit together.
"""

from __future__ import annotations

from dataclasses import dataclass

from .limit import Limit
from .options import NewsOptions
from .requests import Requests

_FADE = 0.7
"""What of the earlier counts is kept in one interval: what is known of returning clients is three intervals old."""

_HEADROOM, _PROBE = 1.25, 0.05
"""The second bucket is above its use by this factor and this part of the limit: otherwise it would never grow."""

_NEAR = 0.05
"""Not rewritten for a bucket that moves by less than this part of the limit."""


@dataclass(frozen=True, slots=True)
class Split:
    """The two buckets; rates in connections per second, bursts in connections."""

    limit: float
    """What both kinds of clients are to come to together."""
    rate: float
    """Anybody."""
    burst: float
    returning_rate: float | None = None
    """Clients that are remembered, beside that; None: nobody is."""
    returning_burst: float | None = None


def whole(limit: Limit) -> Split:
    """One bucket for everyone: no client is remembered, as in Chen & Heidemann."""
    return Split(limit.rate, limit.rate, limit.burst)


def rates(limit: float, returning: float, share: float) -> tuple[float, float]:
    """The rates of both buckets, when ``returning`` connections per second pass by the second.

    The first gets what they leave of the limit, the second at most ``share`` of it. As the second is a little wider
    than its use, the sum can be above the limit until the next interval, up to ``widest``.
    """
    most = limit * share
    used = min(returning, most)
    return limit - used, min(used * _HEADROOM + limit * _PROBE, most)


def widest(share: float) -> float:
    """The most that the sum of both rates comes to, in parts of the limit: 1.14 for half of it.

    The sum grows with what returning clients use until the second bucket is as wide as its ``share``, and falls then.
    """
    return 1 + min(share, share - (share - _PROBE) / _HEADROOM)


class Splitter:
    """One target's split, kept up to date from what its second bucket let pass."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._returned = 0.0
        self._split: Split | None = None

    @property
    def returning(self) -> float:
        """Connections per second that pass because their client is remembered."""
        return self._returned / self._seconds if self._seconds > 0 else 0.0

    def adopt(self, split: Split) -> None:
        """Go on from a split that a running switch was found with."""
        self._split = split
        self._seconds, self._returned = 1.0, max(0.0, split.limit - split.rate)

    def renew(self) -> None:
        """Make the next split anew, however near the present one is: the size of its buckets is another."""
        self._split = None

    def count(self, requests: Requests, seconds: float) -> None:
        """Take in what was counted in an interval of so many seconds."""
        self._seconds = self._seconds * _FADE + seconds
        self._returned = self._returned * _FADE + requests.returning

    def split(self, limit: Limit, options: NewsOptions) -> Split:
        """The split for a limit; the present one while it is near enough."""
        if options.remember_s == 0:
            return whole(limit)
        rate, second = rates(limit.rate, self.returning, options.production.returning_share)
        old = self._split
        if old is not None and old.limit == limit.rate and old.returning_rate is not None:
            apart = max(abs(rate - old.rate), abs(second - old.returning_rate))
            if apart <= _NEAR * limit.rate:
                return old

        def burst(rate: float) -> float:
            return max(1.0, rate * options.bucket_s)

        self._split = Split(limit.rate, rate, burst(rate), second, burst(second))
        return self._split
