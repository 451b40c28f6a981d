"""Division of budgets into shares: equal ones, those of ABT and SABT, and fixed ones. All in bytes, in the needs'
order.

No share exceeds its need, since more would be of no use, except with equal and fixed sharing, with which the papers
compare. The sum never exceeds the budget, except with fixed sharing. All servers' budgets are divided at once: for a
thousand servers, a thousand numpy calls would take longer than all transfers together.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .throughput import Column

Owners = NDArray[np.int64]
"""The index of each need's budget."""


class Sharing(Protocol):
    """A method that divides budgets. Budgets, needs (above 0) and shares are in bytes; without ``owners`` there is one
    budget."""

    def __call__(self, budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
        """Return the shares. O(n log n)."""
        ...


def equal(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """Return equal shares, needed or not: EQ (Matsuo et al., section 3)."""
    budgets, owners = _as_columns(budget, needs, owners)
    counts = np.bincount(owners, minlength=len(budgets))
    return (budgets / np.maximum(1, counts))[owners]


@cache
def fixed(size: float) -> Sharing:
    """Return the method that gives every transfer the same size (section 4.2: 16 or 64 KB), whatever the budget is."""

    def sharing(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
        del budget, owners
        return np.full(len(needs), float(size))

    return sharing


def abt(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """Return max-min fair shares: what some transfers do not need is divided equally among the others.

    Semke, Mahdavi & Mathis (SIGCOMM 1998, ABT), as in Matsuo et al., section 2.1.
    """
    return _shared(*_as_columns(budget, needs, owners), needs, np.ones(len(needs)))


def sabt(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """Return shares that start equal; what some transfers do not need of theirs goes to the others in proportion to
    need.

    Matsuo et al. divide "by throughput" (section 2.2.1) or "by the buffer needed" (4.1); here it is by need. A transfer
    that needs more than an equal share never gets less than one.
    """
    return _shared(*_as_columns(budget, needs, owners), needs, needs)


def _as_columns(budget: float | Column, needs: Column, owners: Owners | None) -> tuple[Column, Owners]:
    return np.atleast_1d(np.asarray(budget, np.float64)), np.zeros(len(needs), np.int64) if owners is None else owners


def _shared(budgets: Column, owners: Owners, needs: Column, by: Column) -> Column:
    """Return the needs and, where a budget does not cover them, shares by progressive filling.

    Each transfer starts with an equal share. Those that need less leave the rest to the others in proportion to ``by``,
    until no share exceeds its need. Sorted by need, the satisfied transfers are a prefix, which grows while the next
    transfer's share covers its need.
    """
    shares = needs.astype(np.float64)
    short = np.flatnonzero((np.bincount(owners, needs, len(budgets)) > budgets)[owners])
    if not len(short):
        return shares
    # Sort by need, then stably by budget: a budget's index has at most 16 bits, which numpy sorts by radix.
    order = short[np.argsort(needs[short], kind="stable")]
    order = order[np.argsort(owners[order].astype(np.min_scalar_type(len(budgets))), kind="stable")]
    begins, run_of, counts = _runs(owners[order])
    equal_share = (budgets[owners[order[begins]]] / counts)[run_of]
    sorted_needs, sorted_by = needs[order], by[order]
    spare = equal_share * (np.arange(len(order)) - begins[run_of]) - (
        _summed(sorted_needs, begins, run_of) - sorted_needs
    )
    remaining = np.add.reduceat(sorted_by, begins)[run_of] - _summed(sorted_by, begins, run_of) + sorted_by
    # If all transfers before one were satisfied, each byte (or head) of the remaining ones would get this much more
    # than the equal share.
    extra = spare / remaining
    is_unsatisfied = sorted_needs > (equal_share + extra * sorted_by) * (1 + 1e-12)
    # The first transfer of each run that is not satisfied; the run's end if all are.
    first = np.minimum.reduceat(np.where(is_unsatisfied, np.arange(len(order)), len(order)), begins)
    is_after_first = np.arange(len(order)) >= first[run_of]
    extra_of_run = extra[np.minimum(first, len(order) - 1)][run_of]
    shares[order] = np.where(
        is_after_first, np.minimum(equal_share + extra_of_run * sorted_by, sorted_needs), sorted_needs
    )
    return shares


def _runs(values: Owners) -> tuple[Owners, Owners, Owners]:
    """Return where each run of equal values begins, each element's run, and each run's length."""
    starts = np.concatenate(([True], values[1:] != values[:-1]))
    begins = np.flatnonzero(starts)
    return begins, np.cumsum(starts) - 1, np.diff(np.append(begins, len(values)))


def _summed(values: Column, begins: Owners, run_of: Owners) -> Column:
    """Return, for each element, the sum from its run's beginning up to and including it."""
    sums = np.cumsum(values)
    return sums - (sums[begins] - values[begins])[run_of]
