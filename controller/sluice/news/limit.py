"""The rate limit: a token bucket on new connections (section 5.1 of Chen & Heidemann)."""

from __future__ import annotations

from dataclasses import dataclass

from .options import NewsOptions


@dataclass(frozen=True, slots=True)
class Limit:
    """What a token bucket on new connections is to be set to. Established connections never meet it."""

    rate: float
    """Tokens (new connections) per second."""
    burst: float
    """Bucket size, connections."""


def bounded(rate: float, options: NewsOptions) -> float:
    """A limit within its static bounds, connections per second."""
    return min(max(rate, options.limit_min), options.limit_max)


def bucket(rate: float, options: NewsOptions) -> Limit:
    """The token bucket for a limit: ``bucket_s`` seconds of it, at least one connection."""
    rate = bounded(rate, options)
    return Limit(rate, max(1.0, rate * options.bucket_s))
