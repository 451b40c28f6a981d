"""How many responses last from one interval into the next, and how certain it is that more do.

A link that fills makes responses queue and time out: more of them are seen again in the interval that follows. AR is
the mean of a dozen rates that their sizes scatter by a fifth; this part counts every response, by yes or no.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from .flows import FlowKeys


@dataclass(frozen=True, slots=True)
class Portion:
    """So many of so many."""

    count: int = 0
    of: int = 0

    def __add__(self, other: Portion) -> Portion:
        return Portion(self.count + other.count, self.of + other.of)

    @property
    def half(self) -> Portion:
        """Half as many of half as many."""
        return Portion(self.count // 2, self.of // 2)

    @property
    def share(self) -> float:
        """The part, a little towards a half: of none it is one (Laplace's rule of succession)."""
        return (self.count + 1) / (self.of + 2)


def lasting(newest: FlowKeys, earlier: FlowKeys) -> Portion:
    """The flows of the newest interval that were seen before, of all of them."""
    return Portion(int(np.isin(newest, earlier).sum()), int(newest.size))


def evidence(now: Portion, usual: float, more: float) -> float:
    """The logarithm of how much likelier a part is if the true one is ``more`` than if it is ``usual``.

    Wald's sequential probability ratio test: looked at as often as one likes, it passes ln(1/a) by chance in at most
    the part a of all tests, whatever the number of responses. Both between 0 and 1, exclusively.
    """
    return now.count * log(more / usual) + (now.of - now.count) * log((1 - more) / (1 - usual))
