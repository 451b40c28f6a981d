"""Shares of one budget: equal ones, those of ABT and SABT, fixed ones. Bytes in, bytes out, in the order of the needs.

No share is above its need, for more is of no use, and together they never exceed the budget; fixed ones are the
exception, as they are what the papers compare with.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .throughput import Column

Sharing = Callable[[float, Column], Column]
"""Budget and needs in bytes, needs above 0; the shares in bytes."""


def equal(budget: float, needs: Column) -> Column:
    """EQ (Matsuo et al., section 3): everybody the same, needed or not."""
    return np.full(len(needs), budget / max(1, len(needs)))


def fixed(size: float) -> Sharing:
    """The same size for everybody (section 4.2: 16 or 64 KB), whatever the budget says."""
    return lambda _, needs: np.full(len(needs), float(size))


def abt(budget: float, needs: Column) -> Column:
    """Max-min fair: what some do not need is shared equally among the others.

    Semke, Mahdavi & Mathis (SIGCOMM 1998, ABT), as Matsuo et al. have it in section 2.1.
    """
    return _shared(budget, needs, np.ones(len(needs)))


def sabt(budget: float, needs: Column) -> Column:
    """What some do not need of an equal share is shared among the others in proportion to their needs.

    Matsuo et al., section 2.2.1 ("by throughput") and 4.1 ("by the buffer needed"): by the need. Nobody who wants more
    than an equal share gets less than that.
    """
    return _shared(budget, needs, needs)


def _shared(budget: float, needs: Column, by: Column) -> Column:
    """Equal shares; those who need less give the rest to the others in proportion to ``by``, until nobody has too much.

    Sorted by need, the satisfied ones are a prefix: it grows while the next one's share covers its need.
    """
    count = len(needs)
    if count == 0 or needs.sum() <= budget:
        return needs.astype(np.float64)
    each = budget / count
    order = np.argsort(needs, kind="stable")
    sorted_needs, sorted_by = needs[order], by[order]
    before = np.concatenate(([0.0], np.cumsum(sorted_needs)[:-1]))
    spare = each * np.arange(count) - before
    left = np.cumsum(sorted_by[::-1])[::-1]
    # Were the first k satisfied, this is what each byte (or head) of the others' would get beside the equal share.
    extra = spare / left
    wants_more = sorted_needs > (each + extra * sorted_by) * (1 + 1e-12)
    satisfied = int(np.argmax(wants_more)) if wants_more.any() else count
    shares = sorted_needs.astype(np.float64)
    if satisfied < count:
        shares[satisfied:] = each + extra[satisfied] * sorted_by[satisfied:]
    result = np.empty(count)
    result[order] = np.minimum(shares, sorted_needs)
    return result
