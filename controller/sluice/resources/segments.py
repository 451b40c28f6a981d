"""Rounds shares of buffers to whole segments, because a sender leaves a fraction of a segment unused (RFC 9293, section
3.8.6.2.1)."""

from __future__ import annotations

import numpy as np

from .shares import Owners
from .throughput import Column


def in_segments(shares: Column, mss: Column, owners: Owners, budgets: Column) -> Column:
    """Return the shares in bytes, each rounded to whole segments.

    ``mss``: segment sizes in bytes, above 0; ``budgets``: each owner's budget in bytes. Rounding down leaves part of a
    budget over. With this part, shares are rounded up instead, beginning with those that lost the largest fraction of a
    segment. Shares below a segment are not rounded down, and are rounded up last. The sum never exceeds the budget.
    """
    segments = np.floor(shares / mss)
    sizes = np.where(segments > 0, segments * mss, shares)
    rounded_up = (segments + 1) * mss
    order = np.argsort((sizes - shares) / mss)
    order = order[np.argsort(owners[order].astype(np.min_scalar_type(len(budgets))), kind="stable")]
    ordered_owners, cost = owners[order], (rounded_up - sizes)[order]
    spent = np.cumsum(cost)
    spent -= (spent - cost)[np.searchsorted(ordered_owners, ordered_owners)]
    remainders = budgets - np.bincount(owners, sizes, len(budgets))
    sizes[order] = np.where(spent <= remainders[ordered_owners], rounded_up[order], sizes[order])
    return sizes
