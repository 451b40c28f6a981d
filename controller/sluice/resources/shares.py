"""Division of budgets into shares: equal shares, those of ABT and SABT, and fixed ones. Sizes are in bytes, and shares
are in the order of the needs.

No share exceeds its need, because a transfer could not use more. The exceptions are equal and fixed sharing, with which
the papers compare. The sum never exceeds the budget, except with fixed sharing. The budgets of all servers are divided
at once: a thousand numpy calls for a thousand servers would take longer than the division for all transfers.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .throughput import Column

Owners = NDArray[np.int64]
"""For each need, the index of the budget that it belongs to."""


class Sharing(Protocol):
    """A method that divides budgets. Budgets, needs (above 0) and shares are in bytes. Without ``owners`` there is a
    single budget."""

    def __call__(self, budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
        """Return the share of each need, in O(n log n)."""
        ...


def equal(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """Return equal shares, independent of the needs: EQ (Matsuo et al., section 3)."""
    budgets, owners = _as_columns(budget, needs, owners)
    counts = np.bincount(owners, minlength=len(budgets))
    return (budgets / np.maximum(1, counts))[owners]


@cache
def fixed(size: float) -> Sharing:
    """Return a method that gives every transfer ``size`` bytes (Matsuo et al., section 4.2: 16 or 64 KB), independently
    of the budget."""

    def sharing(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
        del budget, owners
        return np.full(len(needs), float(size))

    return sharing


def abt(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """Return max-min fair shares: what some transfers do not need of an equal share is divided equally among the
    others.

    This is ABT (Semke, Mahdavi & Mathis, SIGCOMM 1998) as in Matsuo et al., section 2.1.
    """
    return _shared(*_as_columns(budget, needs, owners), needs, np.ones(len(needs)))


def sabt(budget: float | Column, needs: Column, owners: Owners | None = None) -> Column:
    """Return equal shares, of which unneeded parts go to the other transfers in proportion to their needs.

    This is SABT. Matsuo et al. divide "by throughput" (section 2.2.1) or "by the buffer needed" (4.1); here the
    division is by need. A transfer that needs more than an equal share never gets less than an equal share.
    """
    return _shared(*_as_columns(budget, needs, owners), needs, needs)


def _as_columns(budget: float | Column, needs: Column, owners: Owners | None) -> tuple[Column, Owners]:
    return np.atleast_1d(np.asarray(budget, np.float64)), np.zeros(len(needs), np.int64) if owners is None else owners


def _shared(budgets: Column, owners: Owners, needs: Column, by: Column) -> Column:
    """Return each transfer's need if its budget covers the sum of its transfers' needs; otherwise its share by
    progressive filling.

    Each transfer starts with an equal share. What a transfer does not need is divided among the others in proportion to
    ``by``, until no share exceeds its need. If transfers are ordered by need, the satisfied ones are a prefix. The
    prefix grows while the next transfer's share covers its need.
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
    # ``extra``: if all transfers before this one were satisfied, the remaining ones would get this much more than the
    # equal share, per unit of ``by``. A unit is a byte of need or a transfer.
    extra = spare / remaining
    is_unsatisfied = sorted_needs > (equal_share + extra * sorted_by) * (1 + 1e-12)
    # The index of the first unsatisfied transfer in each run; len(order) if the run has none.
    first = np.minimum.reduceat(np.where(is_unsatisfied, np.arange(len(order)), len(order)), begins)
    is_after_first = np.arange(len(order)) >= first[run_of]
    extra_of_run = extra[np.minimum(first, len(order) - 1)][run_of]
    shares[order] = np.where(
        is_after_first, np.minimum(equal_share + extra_of_run * sorted_by, sorted_needs), sorted_needs
    )
    return shares


def _runs(values: Owners) -> tuple[Owners, Owners, Owners]:
    """Return the index at which each run of equal values begins, the run of each element, and the length of each
    run."""
    starts = np.concatenate(([True], values[1:] != values[:-1]))
    begins = np.flatnonzero(starts)
    return begins, np.cumsum(starts) - 1, np.diff(np.append(begins, len(values)))


def _summed(values: Column, begins: Owners, run_of: Owners) -> Column:
    """Return, for each element, the sum from the beginning of its run up to and including the element."""
    sums = np.cumsum(values)
    return sums - (sums[begins] - values[begins])[run_of]
