"""Where responses begin to last longer under a limit: a sequential test since its last move."""

from __future__ import annotations

from collections import deque
from math import log
from statistics import median

from .lasting import Portion, evidence

MORE = 0.33
"""Responses last when so much more of them do than under lower limits."""
_TOO_LOW, _TOO_HIGH = 0.05, 0.05
"""Part of the decisions that may be wrong: down where responses last no longer, and up where they do."""
_EVIDENT = 20
"""So many responses lasted under lower limits: then it tells something that no more do."""
_BELOW = 0.85
"""Limits up to this part of the present one are lower: what was seen under them is the reference."""
_SHARE_MOST = 0.7
"""Where more last than that, no more is looked for."""
_NEAR = 0.02
"""Limits nearer than that, in parts of them, are one."""
_ENOUGH = 20_000
"""So many responses under one limit: half of them give way to newer ones."""
_RECENT = 9
"""Limits whose median stands for a present one above it: an excursion makes no lower limit of a usual one."""


class Knee:
    """What is seen of the responses under a limit that rests, held against what lower limits showed.

    The reference is this crowd's own, for its responses need not last as those of quiet times do. It is of lower limits
    only: where there is none the limit cannot be what makes responses last.
    """

    def __init__(self) -> None:
        self._seen: dict[int, Portion] = {}
        """Under each limit, by its logarithm in steps of _NEAR."""
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._limit = 0.0
        self._now = Portion()
        self._found = False
        self._wait = 0
        self._drains = 0

    def moved(self, limit: float, wait: int, drains: int | None = None) -> None:
        """The limit moved: what the next ``wait`` intervals show is of both, and a queue drains for ``drains``, in
        which nothing becomes a reference; None: as long as before."""
        self._found = self._found or self.strained
        self._limit, self._now, self._wait = limit, Portion(), wait
        if drains is not None:
            self._drains = drains
        self._recent.append(limit)

    def add(self, portion: Portion | None, *, degraded: bool) -> None:
        """Take in an interval, None where nobody can tell. While AR is ``degraded`` it is no reference."""
        waits, self._wait = self._wait > 0, max(0, self._wait - 1)
        drains, self._drains = self._drains > 0, max(0, self._drains - 1)
        if portion is None:
            return
        if not waits:
            self._now += portion
        if not degraded and not drains:
            # What a decision was made by counts with what followed: alone it is biased towards the decision.
            place = _place(self._limit)
            seen = self._seen.get(place, Portion())
            self._seen[place] = (seen.half if seen.of > _ENOUGH else seen) + portion

    @property
    def known(self) -> bool:
        """There is something to compare: responses that last under lower limits, and some under this one."""
        reference = self._reference
        return reference is not None and reference.count >= _EVIDENT and self._now.of > 0

    @property
    def strained(self) -> bool:
        """More responses last than under lower limits, certainly."""
        return self._evidence >= log(1 / _TOO_LOW)

    @property
    def denies(self) -> bool:
        """It would be seen if more lasted, and rather fewer do."""
        return self.known and self._evidence < 0

    @property
    def room(self) -> float:
        """Where responses last no longer, certainly: the part of the largest step that is left to where they would."""
        reference = self._reference
        if reference is None or self._evidence > -log(1 / _TOO_HIGH):
            return 0.0
        left = 1 - (self._now.share / reference.share - 1) / MORE
        return min(1.0, max(0.0, left))

    @property
    def _reference(self) -> Portion | None:
        """Under lower limits; None where there was none."""
        present = self._limit
        if self._found:
            present = min(present, median(self._recent))
        below = _place(_BELOW * present)
        lower = sum((seen for place, seen in self._seen.items() if place <= below), start=Portion())
        return lower if lower.of else None

    @property
    def _evidence(self) -> float:
        """For more, above 0, or for no more, below."""
        reference = self._reference
        if reference is None:
            return 0.0
        usual = min(reference.share, _SHARE_MOST)
        return evidence(self._now, usual, usual * (1 + MORE))


def _place(limit: float) -> int:
    return round(log(max(limit, 1e-9)) / _NEAR)
