"""Receive buffers: an equal share for each open connection.

Azuma et al. (section 2.1.2) let a buffer grow and shrink by its use. The switch measures no uploads, and so nobody
knows that use (docs/limitations.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .direction import default_cap


@dataclass(frozen=True, slots=True)
class ReceiveBudget:
    """What a server has for what its clients send, in bytes."""

    size: float
    fixed: float | None = None
    """The share of everybody, whatever the budget is."""


class Received(NamedTuple):
    """What a server's open connections can have, in bytes."""

    budget: float
    default: int
    """The cap of each."""
    connections: int
    """Open."""


def received(budget: ReceiveBudget, connections: int, before: int) -> Received:
    """What each of so many open connections can have; ``before`` is what they had, in bytes."""
    return Received(budget.size, default_cap(budget.size, budget.fixed, connections, before), connections)
