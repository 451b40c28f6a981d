"""Shares in whole segments: a sender leaves what is less than a segment unused (RFC 9293, section 3.8.6.2.1)."""

from __future__ import annotations

import numpy as np

from .shares import Owners
from .throughput import Column


def in_segments(shares: Column, mss: Column, owners: Owners, parts: Column) -> Column:
    """The same shares in bytes, each of whole segments.

    ``mss``: bytes, above 0; ``parts``: the budget of each owner, in bytes. What rounding leaves of it goes, a segment
    each, to those who lost the largest part of one. Shares below a segment stay; their sum is never above the budget.
    """
    segments = np.floor(shares / mss)
    sizes = np.where(segments > 0, segments * mss, shares)
    one_more = (segments + 1) * mss
    order = np.argsort((sizes - shares) / mss)
    order = order[np.argsort(owners[order].astype(np.min_scalar_type(len(parts))), kind="stable")]
    of, cost = owners[order], (one_more - sizes)[order]
    spent = np.cumsum(cost)
    spent -= (spent - cost)[np.searchsorted(of, of)]
    left = parts - np.bincount(owners, sizes, len(parts))
    sizes[order] = np.where(spent <= left[of], one_more[order], sizes[order])
    return sizes
