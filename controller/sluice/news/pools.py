"""The servers of each service as a pool, with a verdict on each pool by its own counts. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from sluice.addresses import Packed
from sluice.balance.counts import Counts
from sluice.balance.options import BalanceOptions

from .evidence import Evidence, examine
from .filters import Baseline
from .verdict import Cause, Verdict, judge


@dataclass(frozen=True, slots=True)
class Pool:
    """The servers of one service. The default is a single pool that contains all servers."""

    name: str = ""
    """The service's name, for the sentence to the operator."""
    address: Packed | None = None
    """The service's address; None: a crowd at any destination is a crowd at this pool."""
    servers: frozenset[int] | None = None
    """Server numbers; None: all servers."""
    options: BalanceOptions = field(default_factory=BalanceOptions)
    """The thresholds for the counts of the pool's servers."""

    def of(self, ledger: Mapping[int, Counts]) -> Mapping[int, Counts]:
        """Return the counts of those servers of the pool that were read, in the order of their numbers.

        The counts are without repeated SYNs that were answered (``Counts.distinct``), which depend on the clients'
        round trips.
        """
        servers = ledger if self.servers is None else sorted(self.servers & ledger.keys())
        return {i: ledger[i].distinct for i in servers}

    def crowded(self, crowds: Collection[Packed | None]) -> bool:
        """Return whether a crowd, given by its destination, is at this pool. A crowd of unknown destination (None)
        counts as a crowd at this pool."""
        return any(crowd is None or self.address in (None, crowd) for crowd in crowds)


Ratios = Mapping[int, Mapping[int, float]]
"""Parts of a service's new connections, by service and server. A server of several groups has a part in each group."""

LASTING_WINDOWS = 4
"""Number of measurement windows for which a server must be far worse than the others before a verdict blames it."""


class Pools:
    """The pools of all services, each with its usual number of completed handshakes per second."""

    def __init__(self, pools: Mapping[int, Pool], gain: float, intervals: int) -> None:
        """``gain`` is g of the averages (``production.gain``); ``intervals`` is the length of the window in
        intervals."""
        self.pools, self._gain, self._intervals = pools, gain, intervals
        self._lasting: dict[int, int] = {}
        """Number of consecutive intervals in which a server has been far worse than the others, by server."""
        self._completed: dict[int, Baseline] = {}
        self._evidence: dict[int, Evidence] = {}
        self._parts: dict[int, Mapping[int, Counts]] = {}
        """Each pool's counts over the window, by server."""
        self._ratios = deque[Ratios](maxlen=intervals)
        self._seconds = 1.0

    def configure(self, pools: Mapping[int, Pool], gain: float, intervals: int) -> None:
        """Take over changed pools and parameters. Pools that stay retain their averages."""
        self.pools, self._gain, self._intervals = pools, gain, intervals
        self._ratios = deque(self._ratios, maxlen=intervals)
        self._completed = {number: usual for number, usual in self._completed.items() if number in pools}
        self._evidence = {number: evidence for number, evidence in self._evidence.items() if number in pools}
        for usual in self._completed.values():
            usual.gain = gain

    def examine(
        self,
        ledger: Mapping[int, Counts],
        seconds: float,
        ejected: Collection[int],
        ratios: Ratios = MappingProxyType({}),
    ) -> None:
        """Examine the servers' counts over a window of ``seconds`` before the alarm is decided. ``ratios`` are the
        present ratios.

        A server that is far worse but answers something must be far worse for LASTING_WINDOWS to be blamed. While a
        crowd builds up, one server's queue fills before the others' queues, and its clients repeat their requests to
        it.
        """
        self._seconds, silent = seconds, frozenset(ejected)
        self._ratios.append(ratios)
        self._parts = {number: pool.of(ledger) for number, pool in self.pools.items()}
        examined = {
            number: examine(
                self._parts[number],
                pool.options,
                self._usual(number),
                seconds,
                ejected=silent,
                ratios=self._ratios_of(number),
            )
            for number, pool in self.pools.items()
        }
        far = [server for evidence in examined.values() for server in evidence.far_worse]
        self._lasting = {server: self._lasting.get(server, 0) + 1 for server in far}
        long = LASTING_WINDOWS * self._intervals
        lasting = silent | {i for i, intervals in self._lasting.items() if intervals > long or not ledger[i].synack}
        self._evidence = {
            number: replace(evidence, far_worse=tuple(i for i in evidence.far_worse if i in lasting))
            for number, evidence in examined.items()
        }

    def _ratios_of(self, number: int) -> list[Mapping[int, float]]:
        return [ratios.get(number, {}) for ratios in self._ratios]

    def _usual(self, number: int) -> float | None:
        usual = self._completed.get(number)
        return None if usual is None else usual.average

    @property
    def repeated(self) -> float:
        """SYNs per second that failing servers left unanswered. Their retransmissions are no crowd."""
        return sum(evidence.repeated for evidence in self._evidence.values()) / self._seconds

    def refutes(self, target: Packed | None) -> bool:
        """Return whether the servers' counts show that the requests for a destination (None: for any) are no crowd."""
        evidences = [
            evidence
            for number, evidence in self._evidence.items()
            if target is None or self.pools[number].address == target
        ]
        return bool(evidences) and all(evidence.starved or evidence.flooded for evidence in evidences)

    def learn(self) -> None:
        """Learn each pool's usual number of completed handshakes per second from the last window, which was healthy."""
        for number, servers in self._parts.items():
            completed = sum(counts.completed for counts in servers.values())
            self._completed.setdefault(number, Baseline(self._gain)).fold(completed / self._seconds)

    def fall_back(self) -> None:
        """Replace the averages by their slow averages, because what was learned recently was a crowd."""
        for usual in self._completed.values():
            usual.fall_back()

    def judge(self, *, crowds: Collection[Packed | None], slower: bool, busier: bool = False) -> dict[int, Verdict]:
        """Return the verdict on each pool. ``crowds`` are the destinations of crowds, None for an unknown destination.

        A crowd at another destination does not freeze a pool's weights, because the pool's servers are not crowded.
        """
        return {
            number: judge(
                self._parts[number],
                pool.options,
                self._evidence[number],
                crowd=pool.crowded(crowds),
                slower=slower,
                busier=busier,
            )
            for number, pool in self.pools.items()
        }


def together(verdicts: Collection[Verdict], *, crowd: bool) -> Verdict:
    """Return the verdict on all pools: a flood anywhere takes precedence over a crowd, a crowd over a sick server.

    ``crowd``: whether there is a crowd, be it at a service or at another host. The result has ``freeze`` if any verdict
    has ``freeze``.
    """
    causes = {verdict.cause for verdict in verdicts}
    freeze = any(verdict.freeze for verdict in verdicts)
    if Cause.FLOOD in causes:
        return Verdict(Cause.FLOOD, freeze=freeze)
    servers = tuple(sorted(server for verdict in verdicts for server in verdict.servers))
    cause = Cause.CROWD if crowd else Cause.SICK if Cause.SICK in causes else Cause.NORMAL
    return Verdict(cause, servers, freeze)
