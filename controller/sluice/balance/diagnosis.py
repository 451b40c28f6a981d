"""What goes on in a service, told from its ledger: normal, a sick server, a flood, silence."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .counts import Counts, total
from .metric import ratio_of_unanswered


class Condition(StrEnum):
    """The verdict on a service."""

    IDLE = "idle"
    NORMAL = "normal"
    SICK = "sick server"
    SILENT = "silent server"
    PANIC = "panic"
    FLOOD = "flood"
    OVERLOAD = "overload or flood"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A condition and the servers it is about."""

    condition: Condition
    servers: tuple[int, ...] = ()

    @property
    def freeze(self) -> bool:
        """The measurements say nothing about single servers: weights are to stay as they are."""
        return self.condition in (Condition.FLOOD, Condition.OVERLOAD)

    def sentence(self, names: Mapping[int, str], *, acted_on: bool) -> str:
        """One sentence for a person; ``acted_on`` says that production mode is there to do something about it."""
        who = ", ".join(names.get(server, f"server {server}") for server in self.servers)
        frozen = "; the weights are frozen" if acted_on else ""
        match self.condition:
            case Condition.IDLE:
                return "Too few new connections to judge the servers."
            case Condition.NORMAL:
                return "All servers answer."
            case Condition.SICK:
                return f"{who} leaves connection requests unanswered; the others answer."
            case Condition.SILENT:
                held = "; pending connections choose again" if acted_on else ""
                return f"{who} answers nothing{held}."
            case Condition.PANIC:
                split = "; the pool is split by capacity" if acted_on else ""
                return f"Most servers answer nothing ({who}){split}."
            case Condition.FLOOD:
                return f"The servers answer but hardly any handshake completes: a SYN flood{frozen}."
            case Condition.OVERLOAD:
                return f"Every server leaves requests unanswered at once: overload or a flood{frozen}."


def diagnose(
    windows: Mapping[int, Counts],
    silent: Collection[int],
    *,
    min_syn: int,
    quiet_r: float,
    flood_completed: float,
    flood_r: float,
    panic: bool,
) -> Diagnosis:
    """The condition of a service, from its servers' windows and the set of those that are silent."""
    if panic:
        return Diagnosis(Condition.PANIC, tuple(sorted(silent)))
    pool = total(list(windows.values()))
    if pool.syn < min_syn and not silent:
        return Diagnosis(Condition.IDLE)
    if spoofed(pool, min_syn=min_syn, flood_completed=flood_completed):
        return Diagnosis(Condition.FLOOD)
    r = {server: ratio_of_unanswered(counts, min_syn) for server, counts in windows.items()}
    known = {server: value for server, value in r.items() if value is not None}
    if len(known) > 1 and all(value > flood_r for value in known.values()):
        return Diagnosis(Condition.OVERLOAD)
    if silent:
        return Diagnosis(Condition.SILENT, tuple(sorted(silent)))
    sick = tuple(sorted(server for server, value in known.items() if value > quiet_r))
    if not sick:
        return Diagnosis(Condition.NORMAL)
    largest = max(known[server] for server in sick)
    if math.isinf(largest):
        return Diagnosis(Condition.SICK, tuple(s for s in sick if math.isinf(known[s])))
    # Name those that are within a factor of two of the worst, not everyone with a stray loss.
    return Diagnosis(Condition.SICK, tuple(s for s in sick if known[s] >= largest / 2))


def spoofed(pool: Counts, *, min_syn: int, flood_completed: float) -> bool:
    """Whether hardly any answered handshake was completed: those who sent the SYNs are not there."""
    return pool.synack >= min_syn and pool.completed < flood_completed * pool.synack
