"""What decides the ratios of a service: the protocol between a balancer and its policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import ClassVar

from .counts import Counts
from .options import BalanceOptions
from .ratios import Ratios
from .slowness import Work


@dataclass(frozen=True, slots=True)
class Interval:
    """The measurements at the end of an interval. Every mapping is over the servers that do not drain."""

    now_s: float
    ratios: Ratios
    """The ratios in force; they sum to 1."""
    fair: Ratios
    """Shares in proportion to the capacities."""
    windows: Mapping[int, Counts]
    """Sums over the window, the base of R."""
    work: Mapping[int, Work]
    """Open and new connections over the window; only of servers whose open connections the switch counts."""
    silent: frozenset[int]
    """Servers that answered none of their last connections."""
    hold: bool
    """Flash-crowd control has found that no server is the cause of the counts."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A policy's decision on one interval."""

    ratios: Ratios
    """Of the servers that do not drain; they sum to 1."""
    reason: str
    """For logs, traces and the status."""
    ejected: frozenset[int] = frozenset()
    """Servers whose pending connections choose again."""


class Policy(ABC):
    """What decides the ratios of one service. It keeps whatever state it needs from one decision to the next.

    A balancer has a policy for each mode. All of them observe, so that a mode which is set at run time begins with what
    its policy has learned; the one of the mode in force decides, once an interval.
    """

    learns: ClassVar[bool] = True
    """The ratios depend on measurements, so a restarted controller continues from those that the switch has. A policy
    that does not learn has the fair shares at any time."""
    ejects: ClassVar[bool] = False
    """Silent servers are ejected, and ejections read back from a switch are taken over."""
    measures_all: ClassVar[bool] = False
    """Each server that does not drain has a weight of at least 1, so that it is still measured."""
    second_look: ClassVar[bool] = False
    """New connections take a second look where the configuration leaves that open."""

    def __init__(self, options: BalanceOptions) -> None:
        self._options = options

    @property
    def first_share(self) -> float:
        """The part of its fair share that an arriving server begins with."""
        return 1.0

    def configure(self, options: BalanceOptions, staying: Collection[int]) -> None:
        """Take over changed options, and forget all servers but the ``staying`` ones. ``begin`` follows for others."""
        self._options = options

    def begin(self, server: int, now_s: float) -> None:  # noqa: B027
        """Begin anew with a server that arrives, or that answers again after it was ejected."""

    def observe(self, now_s: float, differences: Mapping[int, Counts]) -> None:  # noqa: B027
        """Take in the counts of the interval that ends now, of the servers that do not drain. ``decide`` follows if the
        mode is in force."""

    @abstractmethod
    def decide(self, interval: Interval) -> Outcome:
        """Return the ratios for the next interval."""
