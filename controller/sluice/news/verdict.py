"""Crowd, flood or sick server: one verdict on a service from the alarm, the limit and its servers' ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sluice.balance.confidence import deviation
from sluice.balance.counts import Counts, total
from sluice.balance.diagnosis import Condition, diagnose
from sluice.balance.metric import ratio_of_unanswered
from sluice.balance.options import BalanceOptions


class Cause(StrEnum):
    """What is going on."""

    NORMAL = "normal"
    CROWD = "crowd"
    FLOOD = "flood"
    SICK = "sick server"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause, the servers it is about, and whether R may move weights on it."""

    cause: Cause
    servers: tuple[int, ...] = ()
    """Servers that answer worse than the others, also in a crowd."""
    freeze: bool = False
    """The weights are to stay: no single server is the cause, so R's differences are noise. In production mode only."""


def judge(
    ledger: Mapping[int, Counts],
    options: BalanceOptions,
    *,
    crowd: bool,
    slower: bool,
) -> Verdict:
    """The verdict on a window of the ledger of one service, by server (refused SYNs were never in it).

    ``crowd``: the alarm is set or a limit binds, and neither is known to be for somewhere else. ``slower``: AR is
    degraded.

    - Handshakes answered but hardly any completed: a flood, whatever else is seen.
    - A crowd freezes the weights, unless some servers answer worse than the others beyond chance: R is then right to
      relieve them.
    - Every server leaves requests unanswered at once, without a crowd: a flood when the responses that do come are
      as fast as ever, sick servers when they are not. No single one is to blame.
    - A server that answers worse than the others, without a crowd, is sick: R's business alone.
    """
    extra = options.production
    diagnosis = diagnose(
        ledger,
        (),
        min_syn=options.min_syn,
        quiet_r=extra.quiet_r,
        flood_completed=extra.flood_completed,
        flood_r=extra.flood_r,
        panic=False,
    )
    if diagnosis.condition is Condition.FLOOD:
        return Verdict(Cause.FLOOD, freeze=True)
    worse = _worse(ledger, options)
    if crowd:
        return Verdict(Cause.CROWD, worse, freeze=not worse)
    if diagnosis.condition is Condition.OVERLOAD:
        every = _unanswering(ledger, options)
        return Verdict(Cause.SICK, every, freeze=True) if slower else Verdict(Cause.FLOOD, freeze=True)
    return Verdict(Cause.SICK, worse) if worse else Verdict(Cause.NORMAL)


def _unanswering(ledger: Mapping[int, Counts], options: BalanceOptions) -> tuple[int, ...]:
    """Servers with evidence whose R is not that of a quiet one."""
    r = {server: ratio_of_unanswered(counts, options.min_syn) for server, counts in ledger.items()}
    return tuple(sorted(i for i, value in r.items() if value is not None and value > options.production.quiet_r))


def _worse(ledger: Mapping[int, Counts], options: BalanceOptions) -> tuple[int, ...]:
    """Servers that leave more unanswered than the rest of the pool beyond chance. A lone server has no rest."""
    evident = {i: counts for i, counts in ledger.items() if counts.syn >= options.min_syn}
    whole, z = total(list(evident.values())), options.production.confidence_z
    return tuple(i for i in _unanswering(evident, options) if deviation(evident[i], whole - evident[i]) >= z)
