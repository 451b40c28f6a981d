"""Shares in whole segments: a sender leaves what is less than a segment unused (RFC 9293, section 3.8.6.2.1)."""

from __future__ import annotations

import numpy as np

from .shares import Owners
from .throughput import Column

GRAIN = 256.0
"""Bytes. The switch rounds caps down to the client's unit, 2^scale, which is seldom above (RFC 7323, section 2.2)."""


def in_segments(shares: Column, mss: Column, owners: Owners, parts: Column) -> Column:
    """The same shares in bytes, each enough for whole segments and no more.

    ``mss``: bytes, above 0; ``parts``: the budget of each owner, in bytes. What rounding leaves of it goes, a segment
    each, to those who lost the largest part of one. Shares below a segment stay; their sum is never above the budget.
    """
    segments = np.floor(np.floor(shares / GRAIN) * GRAIN / mss)
    sizes = np.where(segments > 0, _size(segments, mss), shares)
    one_more = _size(segments + 1, mss)
    order = np.argsort((sizes - shares) / mss)
    order = order[np.argsort(owners[order].astype(np.min_scalar_type(len(parts))), kind="stable")]
    of, cost = owners[order], (one_more - sizes)[order]
    spent = np.cumsum(cost)
    spent -= (spent - cost)[np.searchsorted(of, of)]
    left = parts - np.bincount(owners, sizes, len(parts))
    sizes[order] = np.where(spent <= left[of], one_more[order], sizes[order])
    return sizes


def _size(segments: Column, mss: Column) -> Column:
    """Bytes that so many segments take."""
    return np.ceil(segments * mss / GRAIN) * GRAIN
