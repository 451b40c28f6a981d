"""The rate limit: a token bucket on new connections (section 5.1 of Chen & Heidemann)."""

from __future__ import annotations

from dataclasses import dataclass

from .options import NewsOptions


@dataclass(frozen=True, slots=True)
class Limit:
    """The settings of a token bucket on new connections. Packets of established connections bypass the bucket."""

    rate: float
    """Tokens (new connections) per second."""
    burst: float
    """Size of the bucket, in connections."""


def bounded(rate: float, options: NewsOptions) -> float:
    """Return ``rate``, in connections per second, bounded by ``limit_min`` and ``limit_max``."""
    return min(max(rate, options.limit_min), options.limit_max)


def bucket(rate: float, options: NewsOptions) -> Limit:
    """Return the token bucket for a limit. Its size is the number of connections that the limit permits in ``bucket_s``
    seconds, at least one."""
    rate = bounded(rate, options)
    return Limit(rate, max(1.0, rate * options.bucket_s))
