"""The verdict on a service, by the alarm, the limit and its servers' ledger: crowd, flood or sick server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sluice.balance.counts import Counts
from sluice.balance.diagnosis import Condition, diagnose
from sluice.balance.options import BalanceOptions

from .evidence import Evidence, unanswering


class Cause(StrEnum):
    """The cause of what was measured."""

    NORMAL = "normal"
    CROWD = "crowd"
    FLOOD = "flood"
    SICK = "sick server"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause, the servers at fault, and whether the balancer may move weights."""

    cause: Cause
    servers: tuple[int, ...] = ()
    """Servers that answer worse than the others, also in a crowd."""
    freeze: bool = False
    """The weights are to stay, because no single server is the cause and the differences of R are noise."""


def judge(
    ledger: Mapping[int, Counts],
    options: BalanceOptions,
    evidence: Evidence,
    *,
    crowd: bool,
    slower: bool,
    busier: bool,
) -> Verdict:
    """Return the verdict on a service, by the ledger of its servers over the window, which has no refused SYNs.

    ``crowd``: the alarm is set or a limit binds, and neither is known to be about another destination. ``slower``: AR
    is degraded. ``busier``: there are more requests than usual.

    - Hardly any answered handshake is completed, or far fewer than usual while there are more SYNs than the usual
      clients can send: a flood, whatever else is measured.
    - In a crowd the weights stay, unless some servers answer far worse than the others for long: the balancer is then
      right to relieve them. Servers that complete fewer handshakes than usual are in no crowd.
    - Every server leaves requests unanswered at once, without a crowd: a flood when responses are as fast as before,
      sick servers when they are not. No single server is the cause.
    - A server that answers worse than the others, without a crowd, is sick, and the balancer moves its weight. While
      there are more requests than usual a crowd may be building up, and weights move only as in a crowd.
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
