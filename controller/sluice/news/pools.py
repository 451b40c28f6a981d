"""The services' pools of servers: each is judged by its own ledger, and keeps its weights for its own sake. Pure."""

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
        """Its part of the ledger, in the order of the servers' numbers; a server that was not read is not in it.

        Without SYNs that were answered again (``Counts.distinct``): clients' round trips decide nothing.
        """
        servers = ledger if self.servers is None else sorted(self.servers & ledger.keys())
        return {i: ledger[i].distinct for i in servers}

    def crowded(self, crowds: Collection[Packed | None]) -> bool:
        """Whether one of the crowds, by the addresses they are after, is at this pool; one of unknown aim may be."""
        return any(crowd is None or self.address in (None, crowd) for crowd in crowds)


Ratios = Mapping[int, Mapping[int, float]]
"""By service and server: its part of the service's new connections. A server of several groups has one in each."""

LASTING_WINDOWS = 4


class Pools:
    """The services' pools, and what each usually completes."""

    def __init__(self, pools: Mapping[int, Pool], gain: float, intervals: int) -> None:
        """``gain``: g of the averages (``production.gain``); so many intervals are a window."""
        self.pools, self._gain, self._intervals = pools, gain, intervals
        self._lasting: dict[int, int] = {}
        """For how many intervals in a row a server has been far worse than the others."""
        self._completed: dict[int, Baseline] = {}
        self._evidence: dict[int, Evidence] = {}
        self._parts: dict[int, Mapping[int, Counts]] = {}
        """Of the window, each pool's."""
        self._ratios = deque[Ratios](maxlen=intervals)
        self._seconds = 1.0

    def configure(self, pools: Mapping[int, Pool], gain: float, intervals: int) -> None:
        """Take over changed ones; what is usual of those that stay is kept."""
        self.pools, self._gain, self._intervals = pools, gain, intervals
        self._ratios = deque(self._ratios, maxlen=intervals)
        self._completed = {number: usual for number, usual in self._completed.items() if number in pools}
        self._evidence = {number: found for number, found in self._evidence.items() if number in pools}
        for usual in self._completed.values():
            usual.gain = gain

    def examine(
        self,
        ledger: Mapping[int, Counts],
        seconds: float,
        ejected: Collection[int],
        ratios: Ratios = MappingProxyType({}),
    ) -> None:
        """Look at a window of the ledger of so many seconds, before the alarm is decided on. ``ratios``: those of now.

        Who is far worse but answers something has to be so for LASTING_WINDOWS: while a crowd builds up, one server's
        queue is full before the others', and its clients come back to it.
        """
        self._seconds, gone = seconds, frozenset(ejected)
        self._ratios.append(ratios)
        self._parts = {number: pool.of(ledger) for number, pool in self.pools.items()}
        found = {
            number: examine(
                self._parts[number],
                pool.options,
                self._usual(number),
                seconds,
                ejected=gone,
                ratios=self._ratios_of(number),
            )
            for number, pool in self.pools.items()
        }
        far = [server for evidence in found.values() for server in evidence.far_worse]
        self._lasting = {server: self._lasting.get(server, 0) + 1 for server in far}
        long = LASTING_WINDOWS * self._intervals
        lasting = gone | {i for i, intervals in self._lasting.items() if intervals > long or not ledger[i].synack}
        self._evidence = {
            number: replace(evidence, far_worse=tuple(i for i in evidence.far_worse if i in lasting))
            for number, evidence in found.items()
        }

    def _ratios_of(self, number: int) -> list[Mapping[int, float]]:
        return [one.get(number, {}) for one in self._ratios]

    def _usual(self, number: int) -> float | None:
        usual = self._completed.get(number)
        return None if usual is None else usual.average

    @property
    def repeated(self) -> float:
        """SYNs per second that failing servers left unanswered: their clients' retransmissions are no crowd."""
        return sum(evidence.repeated for evidence in self._evidence.values()) / self._seconds

    def refutes(self, target: Packed | None) -> bool:
        """Whether what comes to a destination (None: to any) is known not to be a crowd."""
        found = [e for number, e in self._evidence.items() if target is None or self.pools[number].address == target]
        return bool(found) and all(evidence.starved or evidence.flooded for evidence in found)

    def learn(self) -> None:
        """The window was healthy: what it completed is usual."""
        for number, part in self._parts.items():
            completed = sum(counts.completed for counts in part.values())
            self._completed.setdefault(number, Baseline(self._gain)).fold(completed / self._seconds)

    def fall_back(self) -> None:
        """What was learned of late was a crowd."""
        for usual in self._completed.values():
            usual.fall_back()

    def judge(self, *, crowds: Collection[Packed | None], slower: bool, busier: bool = False) -> dict[int, Verdict]:
        """The verdict on each pool. ``crowds``: the addresses that crowds are after, None for one that is not known.

        A crowd elsewhere is no reason to hold a pool's weights: its servers are not what is crowded.
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
