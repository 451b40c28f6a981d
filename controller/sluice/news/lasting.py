"""The part of the responses that last from one interval into the next, and the evidence that it has grown.

On a link that fills up responses queue and time out, so more of them have packets in the next interval as well. AR is
a mean of a dozen rates, which vary by a fifth with the sizes of responses; this measure counts all responses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from .flows import FlowKeys


@dataclass(frozen=True, slots=True)
class Portion:
    """A number of responses out of all."""

    count: int = 0
    of: int = 0

    def __add__(self, other: Portion) -> Portion:
        return Portion(self.count + other.count, self.of + other.of)

    @property
    def half(self) -> Portion:
        """Half of both numbers."""
        return Portion(self.count // 2, self.of // 2)

    @property
    def share(self) -> float:
        """The estimated part: (count + 1) / (of + 2), Laplace's rule of succession."""
        return (self.count + 1) / (self.of + 2)


def lasting(newest: FlowKeys, earlier: FlowKeys) -> Portion:
    """Return how many of the newest interval's flows had packets in earlier intervals."""
    return Portion(int(np.isin(newest, earlier).sum()), int(newest.size))


def evidence(now: Portion, usual: float, more: float) -> float:
    """Return the log-likelihood ratio of the true share being ``more`` and being ``usual``, both in (0, 1).

    This is Wald's sequential probability ratio test: however often it is evaluated, the ratio exceeds ln(1/a) by chance
    in at most the part a of all tests, whatever the number of responses.
    """
    return now.count * log(more / usual) + (now.of - now.count) * log((1 - more) / (1 - usual))
