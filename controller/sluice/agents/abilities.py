"""The TCP options that a group's servers support, as agents learn them, merged over all agents. Pure.

Each agent learns from the SYN-ACKs that it receives, and discards what it has learned after five to fifteen minutes.
The merged ability is what all servers of a group support: for each option, the least that any agent has learned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Ability:
    """The TCP options that all servers of a group support. A field is None if no SYN-ACK has shown the option."""

    mss: int | None = None
    """The servers' least maximum segment size, in bytes."""
    window: int | None = None
    """The servers' least initial window, unscaled, in bytes."""
    sack: bool | None = None
    """Whether all servers that were offered SACK permit it."""
    scales: bool | None = None
    """Whether all servers that were offered window scaling use it."""
    scale: int | None = None
    """The smallest window scale (shift) of the servers that use window scaling."""


NAMES = tuple(field.name for field in fields(Ability))


@dataclass(frozen=True, slots=True)
class Learned:
    """What an agent has learned about the servers of a group. The servers are given by their numbers in the switch."""

    servers: frozenset[int]
    ability: Ability


def merged(learned: Iterable[Learned], servers: Iterable[int]) -> Ability | None:
    """Return the least value of each field over all agents. ``servers`` are the group's present servers.

    Reports about any other set of servers are ignored. Returns None if no report remains.
    """
    current = frozenset(servers)
    abilities = [report.ability for report in learned if report.servers == current]
    if not abilities:
        return None
    values_by_name = {name: [v for ability in abilities if (v := getattr(ability, name)) is not None] for name in NAMES}
    return Ability(**{name: min(values) for name, values in values_by_name.items() if values})
