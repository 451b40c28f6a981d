"""Diagnoses a service by the counts of its servers: idle, normal, a sick or silent server, overload, or a flood."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from .counts import Counts, total
from .metric import ratio_of_unanswered


class Condition(StrEnum):
    """The condition of a service."""

    IDLE = "idle"
    NORMAL = "normal"
    SICK = "sick server"
    SILENT = "silent server"
    FLOOD = "flood"
    OVERLOAD = "overload or flood"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A service's condition, and the servers that it concerns."""

    condition: Condition
    servers: tuple[int, ...] = ()

    def sentence(self, names: Mapping[int, str], *, acted_on: bool) -> str:
        """Return one sentence for the operator. ``names`` are the servers' names by number; ``acted_on``: whether the
        service's policy ejects silent servers."""
        servers = ", ".join(names.get(server, f"server {server}") for server in self.servers)
        leave, answer = ("leave", "answer") if len(self.servers) > 1 else ("leaves", "answers")
        match self.condition:
            case Condition.IDLE:
                return "Too few new connections to judge the servers."
            case Condition.NORMAL:
                return "All servers answer."
            case Condition.SICK:
                return f"{servers} {leave} connection requests unanswered; the others answer."
            case Condition.SILENT:
                action = "; pending connections choose again" if acted_on else ""
                return f"{servers} {answer} nothing{action}."
            case Condition.FLOOD:
                return "The servers answer but hardly any handshake completes: a SYN flood."
            case Condition.OVERLOAD:
                return "Every server leaves requests unanswered at once: overload or a flood."


def diagnose(
    windows: Mapping[int, Counts],
    silent: Collection[int],
    *,
    min_syn: int,
    quiet_r: float,
    flood_completed: float,
    flood_r: float,
) -> Diagnosis:
    """Return the condition of a service by the counts of its servers over the window.

    The tests for a flood and for overload omit the ``silent`` servers. The thresholds are those of BalanceOptions and
    ProductionOptions.
    """
    answering = {server: counts for server, counts in windows.items() if server not in silent}
    pool = total(list(answering.values()))
    if pool.syn < min_syn and not silent:
        return Diagnosis(Condition.IDLE)
    if spoofed(pool, min_syn=min_syn, flood_completed=flood_completed):
        return Diagnosis(Condition.FLOOD)
    r = {server: ratio_of_unanswered(counts, min_syn) for server, counts in answering.items()}
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
    # The diagnosis names servers with at least half of the worst R; the others may have lost a SYN by chance.
    return Diagnosis(Condition.SICK, tuple(s for s in sick if known[s] >= largest / 2))


def spoofed(pool: Counts, *, min_syn: int, flood_completed: float) -> bool:
    """Return whether less than the part ``flood_completed`` of the answered handshakes was completed, as when clients
    forge the source addresses of SYNs. Fewer than ``min_syn`` answered handshakes are no evidence: False."""
    return pool.synack >= min_syn and pool.completed < flood_completed * pool.synack
