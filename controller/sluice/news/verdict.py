"""Crowd, flood or sick server: one verdict on a service from the alarm, the limit and its servers' ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sluice.balance.counts import Counts
from sluice.balance.diagnosis import Condition, diagnose
from sluice.balance.options import BalanceOptions

from .evidence import Evidence, unanswering


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
    evidence: Evidence,
    *,
    crowd: bool,
    slower: bool,
    busier: bool,
) -> Verdict:
    """The verdict on a window of the ledger of one service, by server (refused SYNs were never in it).

    ``crowd``: the alarm is set or a limit binds, and neither is known to be for somewhere else. ``slower``: AR is
    degraded. ``busier``: more is asked for than usual.

    - Handshakes answered but hardly any completed, or far fewer completed than usual under more SYNs than the usual
      clients can send: a flood, whatever else is seen.
    - A crowd freezes the weights, unless some servers answer far worse than the others, lastingly: R is then right to
      relieve them. Servers that complete less than usual serve no crowd.
    - Every server leaves requests unanswered at once, without a crowd: a flood when the responses that do come are
      as fast as ever, sick servers when they are not. No single one is to blame.
    - A server that answers worse than the others, without a crowd, is sick: R's business alone. While more is asked for
      than usual a crowd may be building up, and weights move as they do in one.
    """
    extra = options.production
    diagnosis = diagnose(
        ledger,
        (),
        min_syn=options.min_syn,
        quiet_r=extra.quiet_r,
        flood_completed=extra.flood_completed,
        flood_r=extra.flood_r,
    )
    if evidence.flooded:
        return Verdict(Cause.FLOOD, freeze=True)
    if crowd and not evidence.starved:
        return Verdict(Cause.CROWD, evidence.far_worse, freeze=not evidence.far_worse)
    if diagnosis.condition is Condition.OVERLOAD:
        every = unanswering(ledger, options)
        return Verdict(Cause.SICK, every, freeze=True) if slower else Verdict(Cause.FLOOD, freeze=True)
    if evidence.worse:
        return Verdict(Cause.SICK, evidence.worse, freeze=busier and not evidence.far_worse)
    return Verdict(Cause.NORMAL)
