"""Shares of budgets: equal ones, those of ABT and SABT, fixed ones. Bytes in, bytes out, in the order of the needs.

No share is above its need, for more is of no use, but those of equal and fixed sharing, which the papers compare with.
Together they never exceed the budget, but fixed ones. Many servers' budgets are shared at once: a thousand calls of
numpy for a thousand servers take longer than all of their transfers.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .throughput import Column

Owners = NDArray[np.int64]
"""The place of each need's budget."""


class Sharing(Protocol):
    """Budgets and needs in bytes, needs above 0; the shares in bytes. Without ``owners`` there is one budget."""

    def __call__(self, budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
        """O(n log n)."""
        ...


def equal(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """EQ (Matsuo et al., section 3): everybody the same, needed or not."""
    budgets, owners = _many(budget, needs, owners)
    counts = np.bincount(owners, minlength=len(budgets))
    return (budgets / np.maximum(1, counts))[owners]


@cache
def fixed(size: float) -> Sharing:
    """The same size for everybody (section 4.2: 16 or 64 KB), whatever the budget says; one function a size."""

    def sharing(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
        del budget, owners
        return np.full(len(needs), float(size))

    return sharing


def abt(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """Max-min fair: what some do not need is shared equally among the others.

    Semke, Mahdavi & Mathis (SIGCOMM 1998, ABT), as Matsuo et al. have it in section 2.1.
    """
    return _shared(*_many(budget, needs, owners), needs, np.ones(len(needs)))


def sabt(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """What some do not need of an equal share is shared among the others in proportion to their needs.

    Matsuo et al., section 2.2.1 ("by throughput") and 4.1 ("by the buffer needed"): by the need. Nobody who wants more
    than an equal share gets less than that.
    """
    return _shared(*_many(budget, needs, owners), needs, needs)


def _many(budget: float | Column, needs: Column, owners: Owners | None) -> tuple[Column, Owners]:
    return np.atleast_1d(np.asarray(budget, np.float64)), np.zeros(len(needs), np.int64) if owners is None else owners


def _shared(budgets: Column, owners: Owners, needs: Column, by: Column) -> Column:
    """Where a budget is short: equal shares; those who need less give the rest to the others in proportion to ``by``,
    until nobody has too much.

    Sorted by need, the satisfied ones are a prefix: it grows while the next one's share covers its need.
    """
    shares = needs.astype(np.float64)
    short = np.flatnonzero((np.bincount(owners, needs, len(budgets)) > budgets)[owners])
    if not len(short):
        return shares
    # By need, then by budget: the latter, of at most 16 bits, by counting.
    order = short[np.argsort(needs[short], kind="stable")]
    order = order[np.argsort(owners[order].astype(np.min_scalar_type(len(budgets))), kind="stable")]
    begins, of, counts = _runs(owners[order])
    each = (budgets[owners[order[begins]]] / counts)[of]
    sorted_needs, sorted_by = needs[order], by[order]
    spare = each * (np.arange(len(order)) - begins[of]) - (_summed(sorted_needs, begins, of) - sorted_needs)
    left = np.add.reduceat(sorted_by, begins)[of] - _summed(sorted_by, begins, of) + sorted_by
    # Were those before one satisfied, this is what each byte (or head) of the others' would get beside the equal share.
    extra = spare / left
    wants_more = sorted_needs > (each + extra * sorted_by) * (1 + 1e-12)
    # The first of each run that wants more, and the run's end where nobody does.
    first = np.minimum.reduceat(np.where(wants_more, np.arange(len(order)), len(order)), begins)
    lacks = np.arange(len(order)) >= first[of]
    rest = extra[np.minimum(first, len(order) - 1)][of]
    shares[order] = np.where(lacks, np.minimum(each + rest * sorted_by, sorted_needs), sorted_needs)
    return shares


def _runs(values: Owners) -> tuple[Owners, Owners, Owners]:
    """Where each run of equal values begins, the run of each element, and how many each has."""
    starts = np.concatenate(([True], values[1:] != values[:-1]))
    begins = np.flatnonzero(starts)
    return begins, np.cumsum(starts) - 1, np.diff(np.append(begins, len(values)))


def _summed(values: Column, begins: Owners, of: Owners) -> Column:
    """The sum up to each element, itself with it, from its run's beginning."""
    sums = np.cumsum(values)
    return sums - (sums[begins] - values[begins])[of]
