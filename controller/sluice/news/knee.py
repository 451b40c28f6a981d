"""Finds the limit at which responses begin to last longer (the knee of the load curve), by a sequential test."""

from __future__ import annotations

from collections import deque
from math import log
from statistics import median

from .lasting import Portion, evidence

MORE = 0.33
"""Responses last longer if the share of lasting responses (those with packets in several intervals) exceeds the share
under lower limits by this part of the latter."""
_TOO_LOW, _TOO_HIGH = 0.05, 0.05
"""Error probabilities of the test: first of lowering a limit under which responses do not last longer, then of raising
a limit under which they do."""
_EVIDENT = 20
"""The least number of lasting responses under lower limits for a comparison."""
_BELOW = 0.85
"""A limit counts as lower than the present limit if it is at most this part of the present limit. The responses under
lower limits are the reference."""
_SHARE_MOST = 0.7
"""In the comparison, the reference's share of lasting responses counts as at most this, so that the share increased by
MORE stays below 1."""
_NEAR = 0.02
"""Width of a bin of limits, in natural logarithms. The responses under all limits of a bin are counted together."""
_ENOUGH = 20_000
"""Number of responses under one limit above which the counts of older responses are halved, so that newer responses
have more weight."""
_RECENT = 9
"""Number of recent limits that are stored. Once the test has found more lasting responses, those limits count as lower
that are lower than the median of the recent limits, even if the present limit is higher than the median. So a single
high limit does not cause a usual limit to count as lower."""


class Knee:
    """Compares the share of lasting responses under the present limit with their share under lower limits.

    Both shares are measured in the same crowd, because a crowd's responses may take longer than usual under any limit.
    Without a measurement under a lower limit, nothing shows that the present limit is the reason for long responses.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Portion] = {}
        """Lasting responses under each limit. The key is the limit's logarithm in steps of _NEAR."""
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._limit = 0.0
        self._now = Portion()
        self._found = False
        self._wait = 0
        self._drains = 0

    def moved(self, limit: float, wait: int, drains: int | None = None) -> None:
        """Restart the test under a changed limit.

        The responses of the next ``wait`` intervals belong partly to the former limit, and do not count. In the next
        ``drains`` intervals a queue drains, so their responses are not added to the reference; None: the number that
        was set by an earlier call still applies.
        """
        self._found = self._found or self.strained
        self._limit, self._now, self._wait = limit, Portion(), wait
        if drains is not None:
            self._drains = drains
        self._recent.append(limit)

    def add(self, portion: Portion | None, *, degraded: bool) -> None:
        """Add the lasting responses of an interval; None: flows have no keys. While AR is ``degraded``, the responses
        are not added to the reference."""
        waits, self._wait = self._wait > 0, max(0, self._wait - 1)
        drains, self._drains = self._drains > 0, max(0, self._drains - 1)
        if portion is None:
            return
        if not waits:
            self._now += portion
        if not degraded and not drains:
            # Responses that led to a decision remain in the reference, together with later ones under the same limit:
            # alone they would be biased towards the decision.
            place = _place(self._limit)
            earlier = self._seen.get(place, Portion())
            self._seen[place] = (earlier.half if earlier.of > _ENOUGH else earlier) + portion

    @property
    def known(self) -> bool:
        """Whether a comparison is possible: there are enough lasting responses under lower limits, and any responses
        under the present limit."""
        reference = self._reference
        return reference is not None and reference.count >= _EVIDENT and self._now.of > 0

    @property
    def strained(self) -> bool:
        """Whether the test shows that more responses last than under lower limits."""
        return self._evidence >= log(1 / _TOO_LOW)

    @property
    def denies(self) -> bool:
        """Whether a comparison is possible and is evidence that the share of lasting responses has not grown."""
        return self.known and self._evidence < 0

    @property
    def room(self) -> float:
        """The part of the largest step by which the limit can rise before responses would last longer. It is 0 unless
        the test shows that responses do not last longer yet."""
        reference = self._reference
        if reference is None or self._evidence > -log(1 / _TOO_HIGH):
            return 0.0
        room = 1 - (self._now.share / reference.share - 1) / MORE
        return min(1.0, max(0.0, room))

    @property
    def _reference(self) -> Portion | None:
        """The lasting responses under lower limits; None if there were no responses under lower limits."""
        limit = self._limit
        if self._found:
            limit = min(limit, median(self._recent))
        below = _place(_BELOW * limit)
        lower = sum((portion for place, portion in self._seen.items() if place <= below), start=Portion())
        return lower if lower.of else None

    @property
    def _evidence(self) -> float:
        """The log-likelihood ratio. Above 0 it is evidence that a larger share of the responses lasts than under lower
        limits; below 0 it is evidence against this."""
        reference = self._reference
        if reference is None:
            return 0.0
        usual = min(reference.share, _SHARE_MOST)
        return evidence(self._now, usual, usual * (1 + MORE))


def _place(limit: float) -> int:
    return round(log(max(limit, 1e-9)) / _NEAR)
