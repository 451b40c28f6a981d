"""Evidence for or against a crowd in the counts of a service's servers. It is examined before the alarm is decided.
Pure.

In labelled runs (`experiments/sim_verdict.py`) two situations were mistaken for a crowd: a SYN flood that servers do
not answer, and retransmissions by the clients of one slow server. In a crowd, a server whose queue filled before the
others' queues was mistaken for a sick server.
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
"""A server is far worse if its R (retransmitted SYNs per answered connection) is more than this many times the R of the
other servers together. In a crowd, servers drop SYNs for as long as their queues are full. So the R's of the servers
differ by chance far more than they would with independent losses."""
_PART = 0.8
"""A server is weaker than the others if it answers less than this part of what the others answer, in proportion to the
ratios."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence about one service over the measurement window."""

    starved: bool = False
    """Whether most SYNs lead to no connection, and less than half as many handshakes as usual are completed. In a crowd
    at least as many handshakes as usual are completed."""
    flooded: bool = False
    """True if hardly any answered handshake is completed, or if the service is ``starved`` and more SYNs arrive than
    the usual clients send when no server answers."""
    worse: tuple[int, ...] = ()
    """Ejected servers, and servers that leave more SYNs unanswered than the others, by more than chance explains."""
    far_worse: tuple[int, ...] = ()
    """Those servers of ``worse`` that are ejected, or that are both far worse and weaker than the servers that are not
    in ``worse``. A server whose queue only filled earlier than the others' queues is not weaker."""
    repeated: int = 0
    """Number of SYNs that the servers in ``worse`` left unanswered. Clients repeat such SYNs, which is no crowd."""


def examine(
    ledger: Mapping[int, Counts],
    options: BalanceOptions,
    usual: float | None,
    seconds: float,
    *,
    ejected: frozenset[int] = frozenset(),
    ratios: Collection[Mapping[int, float]] = (MappingProxyType({}),),
) -> Evidence:
    """Return the evidence of a window of ``seconds`` seconds.

    ``usual`` is the usual number of completed handshakes per second; None: unknown. ``ratios`` has an entry for each
    interval, with each server's part of the new connections. Servers without ratios count as equal.
    """
    all_counts = total(ledger.values())
    worse = tuple(sorted(ejected & ledger.keys() | _worse(ledger, options)))
    starved = (
        usual is not None
        and all_counts.syn >= options.min_syn
        and all_counts.completed < _HALF * min(all_counts.syn, usual * seconds)
    )
    answered_in_vain = spoofed(all_counts, min_syn=options.min_syn, flood_completed=options.production.flood_completed)
    far = ejected | _far_worse(ledger, worse, ratios)
    return Evidence(
        starved=starved,
        flooded=answered_in_vain
        or (starved and usual is not None and all_counts.syn > SYNS_A_CONNECTION * usual * seconds),
        worse=worse,
        far_worse=tuple(i for i in worse if i in far),
        repeated=sum(max(0, ledger[server].syn - ledger[server].synack) for server in worse),
    )


def unanswering(ledger: Mapping[int, Counts], options: BalanceOptions) -> tuple[int, ...]:
    """Return the servers that received at least ``min_syn`` SYNs and whose R (retransmitted SYNs per answered
    connection) is above ``quiet_r``."""
    r = {server: ratio_of_unanswered(counts, options.min_syn) for server, counts in ledger.items()}
    return tuple(sorted(i for i, value in r.items() if value is not None and value > options.production.quiet_r))


def _worse(ledger: Mapping[int, Counts], options: BalanceOptions) -> set[int]:
    """Return the servers that leave more SYNs unanswered than the others. A single server is never among them."""
    extra = options.production
    worse = standing_out(ledger, least_z=extra.confidence_z, min_syn=options.min_syn)
    return worse.keys() & set(unanswering(ledger, options))


def _far_worse(
    ledger: Mapping[int, Counts], worse: tuple[int, ...], ratios: Collection[Mapping[int, float]]
) -> frozenset[int]:
    if not worse:
        return frozenset()
    rest = ledger.keys() - set(worse)
    others = total(ledger[server] for server in rest)
    unanswered = max(0, others.syn - others.synack)
    shares = {server: sum(interval.get(server, 1.0) for interval in ratios) for server in ledger}
    share_of_others = sum(shares[server] for server in rest)

    def far(server: int) -> bool:
        mine = ledger[server]
        loses = (mine.syn - mine.synack) * others.synack > _FAR * unanswered * mine.synack
        return loses and mine.synack * share_of_others <= _PART * others.synack * shares[server]

    return frozenset(server for server in worse if far(server))
