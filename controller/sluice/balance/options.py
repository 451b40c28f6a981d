"""The parameters of the balancing algorithms. The defaults are Ohta & Andou's values where the paper states them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from annotated_types import Gt, Interval, Lt


class Mode(StrEnum):
    """The method that decides the ratios of a service."""

    FIXED = "fixed"
    """The ratios are in proportion to the configured capacities, independently of all measurements."""
    PAPER = "paper"
    """The algorithm of Ohta & Andou, unchanged."""
    PRODUCTION = "production"
    """The algorithm of Ohta & Andou, extended by confidence, slowness, recovery, ejection and slow start. It is the
    default, because paper mode moves the ratios of a healthy service after single lost SYNs."""


LARGEST = 10_000_000
"""The upper bound of parameters without a smaller one. Counts of that size fit into memory; in seconds it is 116
days."""
Share = Annotated[float, Interval(ge=0, le=1)]
Positive = Annotated[float, Interval(gt=0, le=LARGEST)]
NotNegative = Annotated[float, Interval(ge=0, le=LARGEST)]
Count = Annotated[int, Interval(ge=1, le=LARGEST)]


@dataclass(frozen=True, slots=True)
class ProductionOptions:
    """The parameters that production mode adds to those of Ohta & Andou. Times are in seconds, shares are parts of
    1."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    confidence_z: Positive = 3.0
    """Standard deviations by which a server must differ from the other servers before its ratio is lowered."""
    quiet_r: NotNegative = 0.02
    """The service is quiet while no server's R is above this value."""
    recovery: Share = 0.05
    """In each quiet period the ratios move this part of their distance back to the capacities."""
    probe_floor: Share = 0.05
    """The least share of a server, as a part of its fair share, so that the server is still measured."""
    silent_connections: Count = 5
    """Connections without any SYN-ACK after which a server counts as silent. Each SYN that the server resets counts as
    a connection. Seven other SYNs count as one connection, because a client sends up to seven SYNs for a connection."""
    flood_completed: Share = 0.5
    """A flood is suspected when less than this part of the answered handshakes is completed."""
    flood_r: Positive = 1.0
    """A flood or an overload is suspected when R is above this value on every server at once."""
    slow_factor: NotNegative = 2.0
    """A server is slow when its connections stay open more than this many times as long as the connections of the other
    servers, and the evidence is at least ``confidence_z`` standard deviations. 1 or less disables the comparison."""
    slow_start_s: NotNegative = 60.0
    """Seconds in which the share of a new or returning server grows evenly to its fair share, unless the share is
    lowered earlier."""


@dataclass(frozen=True, slots=True)
class BalanceOptions:
    """The balancing of a service. The defaults of period, window and delta are Ohta & Andou's (section 4.3)."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    mode: Mode = Mode.PRODUCTION
    """The method that decides the ratios."""
    period_s: Positive = 10.0
    """T: seconds from one decision to the next."""
    window_s: Positive = 200.0
    """mT: seconds over which R is computed; a multiple of T."""
    delta: Annotated[float, Gt(0), Lt(1)] = 0.1
    """Part of the worst server's ratio that is moved away in one decision (equation 6)."""
    min_syn: Count = 10
    """A window with fewer SYNs than this is no evidence."""
    production: ProductionOptions = field(default_factory=ProductionOptions)

    @property
    def intervals(self) -> int:
        """m, the number of intervals in the window."""
        return max(1, round(self.window_s / self.period_s))
