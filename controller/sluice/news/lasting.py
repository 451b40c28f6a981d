"""The share of the responses that last from one interval into the next, and the evidence that this share has grown.

On a link that fills up, responses wait in queues and time out, so more of them last into the next interval. Their share
varies less than AR (the mean rate of the fastest responses). It is computed from all responses, whereas AR is a mean of
a dozen rates, which vary by a fifth with the sizes of responses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from .flows import FlowKeys


@dataclass(frozen=True, slots=True)
class Portion:
    """A number of responses (``count``) out of all responses (``of``)."""

    count: int = 0
    of: int = 0

    def __add__(self, other: Portion) -> Portion:
        return Portion(self.count + other.count, self.of + other.of)

    @property
    def half(self) -> Portion:
        """A portion with half of both numbers."""
        return Portion(self.count // 2, self.of // 2)

    @property
    def share(self) -> float:
        """The estimated share: (count + 1) / (of + 2), by Laplace's rule of succession."""
        return (self.count + 1) / (self.of + 2)


def lasting(newest: FlowKeys, earlier: FlowKeys) -> Portion:
    """Return how many of the newest interval's flows also had packets in earlier intervals."""
    return Portion(int(np.isin(newest, earlier).sum()), int(newest.size))


def evidence(now: Portion, usual: float, more: float) -> float:
    """Return the log-likelihood ratio of two hypotheses on the true share: that it is ``more``, and that it is
    ``usual``, both in (0, 1).

    This is Wald's sequential probability ratio test. By chance, the ratio exceeds ln(1/a) in at most the part a of all
    tests. This is true for any number of responses, and however often the ratio is evaluated.
    """
    return now.count * log(more / usual) + (now.of - now.count) * log((1 - more) / (1 - usual))
