"""The services' pools of servers: each is judged by its own ledger, and keeps its weights for its own sake. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sluice.addresses import Packed
from sluice.balance.counts import Counts
from sluice.balance.options import BalanceOptions

from .verdict import Cause, Verdict, judge


@dataclass(frozen=True, slots=True)
class Pool:
    """The servers of one service; left as it is, every server that is read."""

    name: str = ""
    """The service's, for the sentence."""
    address: Packed | None = None
    """The service's; None: a crowd anywhere is at this pool."""
    servers: frozenset[int] | None = None
    """None: all."""
    options: BalanceOptions = field(default_factory=BalanceOptions)
    """The thresholds by which its ledger is judged."""

    def of(self, ledger: Mapping[int, Counts]) -> Mapping[int, Counts]:
        """Its part of the ledger, in the order of the servers' numbers; a server that was not read is not in it."""
        return ledger if self.servers is None else {i: ledger[i] for i in sorted(self.servers & ledger.keys())}

    def crowded(self, crowds: Collection[Packed | None]) -> bool:
        """Whether one of the crowds, by the addresses they are after, is at this pool; one of unknown aim may be."""
        return any(crowd is None or self.address in (None, crowd) for crowd in crowds)


def judge_each(
    pools: Mapping[int, Pool], ledger: Mapping[int, Counts], *, crowds: Collection[Packed | None], slower: bool
) -> dict[int, Verdict]:
    """The verdict on each pool. ``crowds``: the addresses that crowds are after, None for one that is not known.

    A crowd elsewhere is no reason to hold a pool's weights: its servers are not what is crowded.
    """
    return {
        number: judge(
            pool.of(ledger),
            pool.options,
            crowd=pool.crowded(crowds),
            slower=slower,
        )
        for number, pool in pools.items()
    }


def together(verdicts: Collection[Verdict], *, crowd: bool) -> Verdict:
    """What is said of all pools: a flood anywhere before a crowd, that before a sick server.

    A crowd may be at none of them (at a host that is no service). ``freeze``: some pool's weights are to stay.
    """
    causes = {verdict.cause for verdict in verdicts}
    freeze = any(verdict.freeze for verdict in verdicts)
    if Cause.FLOOD in causes:
        return Verdict(Cause.FLOOD, freeze=freeze)
    servers = tuple(sorted(server for verdict in verdicts for server in verdict.servers))
    cause = Cause.CROWD if crowd else Cause.SICK if Cause.SICK in causes else Cause.NORMAL
    return Verdict(cause, servers, freeze)
