"""Receive buffers: an equal share for each open connection.

Azuma et al. (section 2.1.2) let a buffer grow and shrink with its use. The switch does not measure uploads, so this use
is unknown (docs/limitations.md).
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
    """A share in bytes that every connection gets, whatever the budget is."""


class Received(NamedTuple):
    """A server's receive buffers in an interval, in bytes."""

    budget: float
    default: int
    """The cap of each connection."""
    connections: int
    """The number of open connections."""


def received(budget: ReceiveBudget, connections: int, before: int) -> Received:
    """Return the share of each of ``connections``; ``before``: their cap until now, in bytes."""
    return Received(budget.size, default_cap(budget.size, budget.fixed, connections, before), connections)
