"""The usual traffic that production mode has learned, to be saved for a controller that starts later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluice.addresses import Packed

from .filters import Average


@dataclass(frozen=True, slots=True)
class Usual:
    """The baselines of usual traffic at one moment."""

    ar: Average
    """AR (the mean rate of the fastest responses), in bit/s."""
    requests: Average
    """Offered requests per second over all destinations."""
    destinations: Mapping[Packed, Average]
    """Offered requests per second for each destination."""
