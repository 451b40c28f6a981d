"""What a target can say over P4Runtime, and how it means it: one interface, a file a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from finsy import P4Schema

from sluice.balance.looks import MOST_LOOKS
from sluice.config.model import Config
from sluice.dataplane.units import Units
from sluice.names import Action, Table
from sluice.switch.bucket import Bucket


class RegisterAccess(Enum):
    """How a target's registers are read."""

    P4RUNTIME = auto()
    """As the specification has it."""
    THRIFT = auto()
    """Over BMv2's Thrift server."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A target. Its functions are pure: they know no connection."""

    name: str
    """As in ``sluice run --target``."""
    arch: str
    """P4Info's ``pkg_info.arch`` of the programs it runs."""
    folder: str
    """Where among the compiled programs its own are."""
    units: Units
    registers: RegisterAccess
    whole_from: int
    """Over P4Runtime an array is read whole when more than one cell in so many is wanted: what one cell costs, as part
    of the whole array's time."""
    answer_s: float
    """Seconds after which a call has failed; to load a program takes longer everywhere (session.py)."""
    reconciles: bool
    """It can replace its program and keep its state, connections with it."""
    code: Callable[[Path], bytes]
    """The device configuration, from the folder of a compiled program. Raises SwitchError."""
    bucket: Callable[[Bucket], Bucket]
    """The nearest bucket that its meters can hold."""
    objection: Callable[[Config, P4Schema], str | None]
    """Why a configuration and a program cannot be had on it, and what to do; None when they can."""


def most_looks(schema: P4Schema) -> int:
    """At how many servers a program can look for a new connection."""
    return 2 if schema.actions.get(Action.CHOOSE_OTHER_SERVERS) is None else MOST_LOOKS


def seeks_idle(schema: P4Schema) -> bool:
    """Whether a program knows which servers are idle."""
    return schema.tables.get(Table.IDLE_MEMBERS) is not None


def lacks(config: Config, schema: P4Schema) -> str | None:
    """Why what a configuration asks for cannot be had with a program; None when it can."""
    switching = [service.name for service in config.services if service.content]
    managed = [service.name for service in config.services if service.resources]
    for names, table, what, key in (
        (switching, Table.AGENTS, "content switching", "content"),
        (managed, Table.RESOURCES, "management of servers' resources", "resources"),
    ):
        if names and schema.tables.get(table) is None:
            return (
                f"its program has no {what}, and {', '.join(names)} asks for it; take `{key}` out, or use the program "
                "for v1model that comes with sluice"
            )
    most = most_looks(schema)
    if looking := [service.name for service in config.services if (service.looks or 0) > most]:
        return (
            f"its program looks at {most} servers for a new connection, and {', '.join(looking)} asks for more; take "
            "`looks` out, or use the program for v1model that comes with sluice"
        )
    return None
