"""The verdict on a service by the alarm, the limit and the counts of its servers: crowd, flood or sick server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sluice.balance.counts import Counts
from sluice.balance.diagnosis import Condition, diagnose
from sluice.balance.options import BalanceOptions

from .evidence import Evidence, unanswering


class Cause(StrEnum):
    """The cause of the measured rates and counts: normal traffic, a flash crowd, a flood of SYNs, or a sick server."""

    NORMAL = "normal"
    CROWD = "crowd"
    FLOOD = "flood"
    SICK = "sick server"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The cause, the servers at fault, and whether the balancer may move weights."""

    cause: Cause
    servers: tuple[int, ...] = ()
    """Numbers of the servers that answer worse than the others; in a crowd, of those that answer far worse. If every
    server leaves requests unanswered, the numbers of all these servers."""
    freeze: bool = False
    """Whether the weights are to stay. They stay if no single server is the cause: differences between the servers in R
    (retransmitted SYNs per answered connection) are then noise."""


def judge(
    ledger: Mapping[int, Counts],
    options: BalanceOptions,
    evidence: Evidence,
    *,
    crowd: bool,
    slower: bool,
    busier: bool,
) -> Verdict:
    """Return the verdict on a service by its servers' counts over the window. Refused SYNs are not in these counts.

    ``crowd``: the alarm is set or a limit binds, and the destination of alarm or limit is unknown or this service.
    ``slower``: AR is degraded. ``busier``: there are more requests than usual.

    - Flood: hardly any answered handshake is completed. Or far fewer than usual are completed, while there are more
      SYNs than the usual clients can send. This verdict is independent of all other measurements.
    - Crowd: the weights stay, unless some servers answer nothing, or far worse than the others for a long time. The
      balancer then rightly relieves these. A service that completes far fewer handshakes than usual is in no crowd.
    - Every server leaves requests unanswered at once, without a crowd: a flood if responses are as fast as before, sick
      servers if they are slower. No single server is the cause.
    - A server that answers worse than the others, without a crowd, is sick, and the balancer moves its weight. While
      there are more requests than usual, a crowd may be building up, and weights move only as in a crowd.
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
