"""The interface of target profiles: which parts of P4Runtime a target supports, and how it deviates from the
specification."""

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
    """The protocol by which the controller accesses a target's registers."""

    P4RUNTIME = auto()
    """Registers are accessed by P4Runtime's RegisterEntry."""
    THRIFT = auto()
    """Registers are accessed through BMv2's Thrift server."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of switch. Its functions are pure: none of them needs a connection to a switch."""

    name: str
    """The target's name, for ``sluice run --target``."""
    arch: str
    """The architecture, as named in P4Info (``pkg_info.arch``), of the programs that the target runs."""
    folder: str
    """The subfolder of the target's program among the compiled programs."""
    units: Units
    registers: RegisterAccess
    cell_cost: int
    """The time to read a single cell over P4Runtime, in units of the time per cell when a register is read completely.
    A register of N cells is read completely if more than N / ``cell_cost`` cells are needed."""
    answer_s: float
    """Seconds after which an unanswered call counts as failed. Loading a program has a longer limit on every target
    (session.py)."""
    reconciles: bool
    """Whether the switch can replace its program and keep all state, connections included."""
    code: Callable[[Path], bytes]
    """Returns the device configuration from the folder of a compiled program. Raises SwitchError."""
    bucket: Callable[[Bucket], Bucket]
    """Returns the nearest bucket that the target's meters can represent."""
    objection: Callable[[Config, P4Schema], str | None]
    """Returns why the target cannot run a configuration with a program, and the remedy; None if it can."""


def most_looks(schema: P4Schema) -> int:
    """Return how many servers a program can compare for a new connection."""
    return 2 if schema.actions.get(Action.CHOOSE_OTHER_SERVERS) is None else MOST_LOOKS


def seeks_idle(schema: P4Schema) -> bool:
    """Return whether a program keeps queues of idle servers."""
    return schema.tables.get(Table.IDLE_MEMBERS) is not None


def lacks(config: Config, schema: P4Schema) -> str | None:
    """Return what a configuration requires but a program lacks, and the remedy; None if the program suffices."""
    switching = [service.name for service in config.services if service.content]
    managed = [service.name for service in config.services if service.resources]
    for names, table, feature, key in (
        (switching, Table.AGENTS, "content switching", "content"),
        (managed, Table.RESOURCES, "management of servers' resources", "resources"),
    ):
        if names and schema.tables.get(table) is None:
            return (
                f"its program has no {feature}, and {', '.join(names)} asks for it; take `{key}` out, or use the "
                "program for v1model that comes with sluice"
            )
    most = most_looks(schema)
    if demanding := [service.name for service in config.services if (service.looks or 0) > most]:
        return (
            f"its program looks at {most} servers for a new connection, and {', '.join(demanding)} asks for more; take "
            "`looks` out, or use the program for v1model that comes with sluice"
        )
    return None
