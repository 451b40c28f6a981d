"""Receive buffers: each open connection gets an equal share of its server's budget.

Azuma et al. (section 2.1.2) let a buffer grow and shrink with its use. The switch does not measure uploads, so the use
of receive buffers is unknown (docs/limitations.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .direction import default_cap


@dataclass(frozen=True, slots=True)
class ReceiveBudget:
    """A server's budget for receive buffers, in bytes."""

    size: float
    fixed: float | None = None
    """A share in bytes that every connection gets, independently of the budget."""


class Received(NamedTuple):
    """The sharing of a server's receive buffers in an interval. Sizes are in bytes."""

    budget: float
    default: int
    """The cap of each connection."""
    connections: int
    """The number of open connections."""


def received(budget: ReceiveBudget, connections: int, before: int) -> Received:
    """Share a budget equally among ``connections`` open connections. ``before`` is their present cap, in bytes."""
    return Received(budget.size, default_cap(budget.size, budget.fixed, connections, before), connections)
