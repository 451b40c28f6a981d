"""What a group's servers support in their handshakes (TCP options), as agents learn it, merged for all agents. Pure.

Each agent learns from the SYN-ACKs that it receives, and remembers for five to ten minutes. The merged ability is what
all servers of a group support: the least of what any agent has learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Ability:
    """What all servers of a group support. None: no SYN-ACK has shown it."""

    mss: int | None = None
    """Least maximum segment size, in bytes."""
    window: int | None = None
    """Least initial window in bytes, unscaled."""
    sack: bool | None = None
    """Whether all servers that were offered SACK permit it."""
    scales: bool | None = None
    """Whether all servers that were offered window scaling use it."""
    scale: int | None = None
    """The smallest window scale (shift) of these servers."""


NAMES = tuple(field.name for field in fields(Ability))


@dataclass(frozen=True, slots=True)
class Learned:
    """What an agent has learned of a group's servers, given by their numbers in the switch."""

    servers: frozenset[int]
    ability: Ability


def merged(learned: Iterable[Learned], servers: Iterable[int]) -> Ability | None:
    """Return the least of each field; None if there is nothing.

    Reports about other servers than the group's present ones are ignored.
    """
    current = frozenset(servers)
    abilities = [report.ability for report in learned if report.servers == current]
    if not abilities:
        return None
    values_by_name = {name: [v for ability in abilities if (v := getattr(ability, name)) is not None] for name in NAMES}
    return Ability(**{name: min(values) for name, values in values_by_name.items() if values})
