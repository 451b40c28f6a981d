"""How long a person waits for an answer (Chen & Heidemann, section 7.6.1)."""

from __future__ import annotations

import math
import random


def draw_wait(mean_s: float, source: random.Random) -> float:
    """Draw the seconds after which a client gives a request up; infinite for a mean of 0 (endless patience).

    A client waits an exponential time, 60 s in the mean, and then cancels or goes on waiting, with equal chances.
    """
    if mean_s <= 0:
        return math.inf
    waited = source.expovariate(1 / mean_s)
    while source.random() < 0.5:
        waited += source.expovariate(1 / mean_s)
    return waited
