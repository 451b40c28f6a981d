"""What a group's servers can do in their handshakes, as agents learn it, and put together for the others. Pure.

Each agent learns from the SYN-ACKs that it sees, for five to ten minutes. What holds for all servers of a group is the
least of what any agent has learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Ability:
    """Of a group's servers together; None: no SYN-ACK has shown it."""

    mss: int | None = None
    """Bytes of the largest segment."""
    window: int | None = None
    """Bytes of the initial window, unscaled."""
    sack: bool | None = None
    """Whether all that were offered SACK permit it."""
    scales: bool | None = None
    """Whether all that were offered window scaling scale."""
    scale: int | None = None
    """The smallest of their scales."""


NAMES = tuple(field.name for field in fields(Ability))


@dataclass(frozen=True, slots=True)
class Learned:
    """What an agent has learned of a group, and of which servers, by their numbers in the switch."""

    servers: frozenset[int]
    ability: Ability


def merged(learned: Iterable[Learned], servers: Iterable[int]) -> Ability | None:
    """Field by field the least; what is about other servers than those of the group now counts for nothing. None
    without any."""
    present = frozenset(servers)
    known = [report.ability for report in learned if report.servers == present]
    if not known:
        return None
    shown = {name: [v for ability in known if (v := getattr(ability, name)) is not None] for name in NAMES}
    return Ability(**{name: min(values) for name, values in shown.items() if values})
