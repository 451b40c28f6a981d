"""The protocol between a balancer and its policy, which decides the ratios of a service."""

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
    """The measurements at the end of an interval. Every mapping is by server number, and contains only servers that do
    not drain."""

    now_s: float
    ratios: Ratios
    """The ratios in force; they sum to 1."""
    fair: Ratios
    """Shares in proportion to the capacities."""
    windows: Mapping[int, Counts]
    """The counts summed over the window. R is computed from them."""
    work: Mapping[int, Work]
    """Open and new connections over the window. The mapping contains only servers whose open connections the switch
    counts."""
    silent: frozenset[int]
    """Servers that have left at least ``ProductionOptions.silent_connections`` connections in a row without a
    SYN-ACK."""
    hold: bool
    """Whether flash-crowd control has found that no server is the cause of the counts, so that the ratios stay."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A policy's decision on one interval."""

    ratios: Ratios
    """The new ratios of the servers that do not drain; they sum to 1."""
    reason: str
    """The reason of the decision, for logs, traces and the status."""
    ejected: frozenset[int] = frozenset()
    """Servers whose pending connections are assigned to another server."""


class Policy(ABC):
    """The method that decides the ratios of one service. It stores what it needs from one decision to the next.

    A balancer has a policy for each mode. All of them observe, so that after a change of mode at run time the new
    policy has already learned. Only the policy of the mode in force decides, once per interval.
    """

    learns: ClassVar[bool] = True
    """Whether the ratios depend on measurements, so that a restarted controller continues with the switch's ratios. The
    ratios of a policy that does not learn are always the fair shares."""
    ejects: ClassVar[bool] = False
    """Whether silent servers are ejected, and ejections read back from a switch are taken over."""
    measures_all: ClassVar[bool] = False
    """Whether each server that does not drain has a weight of at least 1, so that it is still measured."""
    second_look: ClassVar[bool] = False
    """Whether the switch compares several servers for each new connection (the second look) if the configuration does
    not specify it."""

    def __init__(self, options: BalanceOptions) -> None:
        self._options = options

    @property
    def first_share(self) -> float:
        """The part of its fair share with which an arriving server starts."""
        return 1.0

    def configure(self, options: BalanceOptions, staying: Collection[int]) -> None:
        """Take over changed options, and forget all servers except the ``staying`` ones. The balancer then calls
        ``begin`` for each arriving server."""
        self._options = options

    def begin(self, server: int, now_s: float) -> None:  # noqa: B027
        """Start to balance a server that arrives, or that answers again after its ejection."""

    def observe(self, now_s: float, differences: Mapping[int, Counts]) -> None:  # noqa: B027
        """Learn from the counts of the interval that ends now. The mapping contains only servers that do not drain. If
        this policy's mode is in force, the balancer then calls ``decide``."""

    @abstractmethod
    def decide(self, interval: Interval) -> Outcome:
        """Return the ratios for the next interval."""
