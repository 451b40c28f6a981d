"""What a service's ledger says for or against a crowd, before the alarm is looked at. Pure.

Labelled runs (`experiments/sim_verdict.py`) showed what a crowd was confused with: a SYN flood that servers do not
answer, the retransmissions of one slow server's clients, and, in a crowd, one queue that is full before the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sluice.balance.confidence import standing_out
from sluice.balance.counts import Counts, total
from sluice.balance.diagnosis import spoofed
from sluice.balance.metric import ratio_of_unanswered
from sluice.balance.options import BalanceOptions
from sluice.balance.silence import SYNS_A_CONNECTION

_HALF = 0.5
_FAR = 4.0
"""Times the others' R. In a crowd servers drop SYNs for as long as their queues are full: their R's differ by chance
far more than single SYNs' would."""
_PART = 0.8
"""A server that answers less than this of what the others do for its ratio is weaker than they are."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one service, over the measurement window."""

    starved: bool = False
    """Most SYNs come to nothing, and less than half as many handshakes as usual are completed. A crowd is served what
    is usual, and more."""
    flooded: bool = False
    """Hardly any answered handshake is completed; or starved, and more SYNs come than the usual clients send if nobody
    answers them."""
    worse: tuple[int, ...] = ()
    """Servers that leave more unanswered than the others, beyond chance, and those that R has ejected."""
    far_worse: tuple[int, ...] = ()
    """Of those, the ejected, and those whose R is several times that of all that are not worse while they answer less
    than their part: a queue that is full before the others is that of a server that works as much as they do."""
    repeated: int = 0
    """SYNs that those left unanswered: their clients send them again, which is no crowd."""


def examine(
    ledger: Mapping[int, Counts],
    options: BalanceOptions,
    usual: float | None,
    seconds: float,
    *,
    ejected: frozenset[int] = frozenset(),
    ratios: Collection[Mapping[int, float]] = (MappingProxyType({}),),
) -> Evidence:
    """The evidence of a window of so many seconds.

    ``usual``: completed handshakes per second; None: not known. ``ratios``: each server's part of the new connections,
    interval by interval; a service that is in none has servers alike.
    """
    whole = total(list(ledger.values())) if ledger else Counts()
    worse = tuple(sorted(ejected & ledger.keys() | _worse(ledger, options)))
    starved = (
        usual is not None and whole.syn >= options.min_syn and whole.completed < _HALF * min(whole.syn, usual * seconds)
    )
    answered_in_vain = spoofed(whole, min_syn=options.min_syn, flood_completed=options.production.flood_completed)
    far = ejected | _far_worse(ledger, worse, ratios)
    return Evidence(
        starved=starved,
        flooded=answered_in_vain or (starved and usual is not None and whole.syn > SYNS_A_CONNECTION * usual * seconds),
        worse=worse,
        far_worse=tuple(i for i in worse if i in far),
        repeated=sum(max(0, ledger[server].syn - ledger[server].synack) for server in worse),
    )


def unanswering(ledger: Mapping[int, Counts], options: BalanceOptions) -> tuple[int, ...]:
    """Servers with enough SYNs whose R is not that of a quiet one."""
    r = {server: ratio_of_unanswered(counts, options.min_syn) for server, counts in ledger.items()}
    return tuple(sorted(i for i, value in r.items() if value is not None and value > options.production.quiet_r))


def _worse(ledger: Mapping[int, Counts], options: BalanceOptions) -> set[int]:
    """A lone server has no others that it could be worse than."""
    extra = options.production
    worse = standing_out(ledger, least_z=extra.confidence_z, min_syn=options.min_syn)
    return worse.keys() & set(unanswering(ledger, options))


def _far_worse(
    ledger: Mapping[int, Counts], worse: tuple[int, ...], ratios: Collection[Mapping[int, float]]
) -> frozenset[int]:
    if not worse:
        return frozenset()
    rest = ledger.keys() - set(worse)
    others = total([ledger[server] for server in rest]) if rest else Counts()
    unanswered = max(0, others.syn - others.synack)
    part = {server: sum(one.get(server, 1.0) for one in ratios) for server in ledger}
    of_others = sum(part[server] for server in rest)

    def far(server: int) -> bool:
        mine = ledger[server]
        loses = (mine.syn - mine.synack) * others.synack > _FAR * unanswered * mine.synack
        return loses and mine.synack * of_others <= _PART * others.synack * part[server]

    return frozenset(server for server in worse if far(server))
