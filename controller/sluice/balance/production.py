"""Production mode: Ohta & Andou's step with confidence, slowness, recovery, ejection and slow start."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from .confidence import standing_out
from .counts import Counts
from .metric import ratio_of_unanswered
from .options import BalanceOptions
from .policy import Interval, Outcome, Policy
from .ratios import Ratios, bounded, normalised
from .recovery import Ceilings, ramp, relax
from .slowness import slow
from .step import HOLD, relieve
from .window import Window

NAMED = 3
"""The reason of a decision names at most this many of the servers that give up a part of their ratios."""


@dataclass(frozen=True, slots=True)
class _Move:
    """New ratios, and the servers that gave up a part of their ratios."""

    ratios: Ratios
    reason: str
    giving: frozenset[int] = frozenset()
    losing: frozenset[int] = frozenset()
    """Those of the ``giving`` servers that lost SYNs. The connections of the other giving servers stayed open too
    long."""


class ProductionPolicy(Policy):
    """Moves traffic away from several servers at a time, if chance does not explain their losses or slowness. Ejects
    silent servers.

    Ratios recover while no server loses SYNs. Even during a hold (`Interval.hold`), the ratios of silent servers and of
    servers in their slow start change.
    """

    ejects = True
    measures_all = True
    second_look = True

    def __init__(self, options: BalanceOptions) -> None:
        super().__init__(options)
        # Each server's counts of the last m periods, discarded when its losses move weight. In the balancer's window, a
        # loss stays for m periods, and would move weight in each of them. (The samples of open connections are not
        # discarded after a move: discarding them made transfers take two fifths longer.)
        self._evidence: dict[int, Window] = {}
        self._ceilings = Ceilings()
        self._begun_s: dict[int, float] = {}
        """The times, in seconds, at which the servers in their slow start joined or answered again."""
        self._observed_s = -math.inf
        """The time at which the last interval ended, in seconds."""

    @property
    def first_share(self) -> float:
        extra = self._options.production
        return extra.probe_floor if extra.slow_start_s > 0 else 1.0

    def configure(self, options: BalanceOptions, staying: Collection[int]) -> None:
        super().configure(options, staying)
        self._begun_s = {i: begun_s for i, begun_s in self._begun_s.items() if i in staying}
        self._evidence = {i: window for i, window in self._evidence.items() if i in staying}
        for window in self._evidence.values():
            window.resize(options.intervals)
        self._ceilings.keep(staying)

    def begin(self, server: int, now_s: float) -> None:
        self._evidence[server] = Window(self._options.intervals)
        self._ceilings.forget([server])
        self._begun_s[server] = now_s

    def observe(self, now_s: float, differences: Mapping[int, Counts]) -> None:
        extra, before_s, self._observed_s = self._options.production, self._observed_s, now_s
        self._begun_s = {i: begun_s for i, begun_s in self._begun_s.items() if before_s - begun_s < extra.slow_start_s}
        for server, counts in differences.items():
            self._evidence.setdefault(server, Window(self._options.intervals)).push(counts)

    def decide(self, interval: Interval) -> Outcome:
        windows = {server: counts.distinct for server, counts in interval.windows.items()}
        move = self._move(replace(interval, windows=windows))
        self._ceilings.pass_period()
        for server in move.losing:
            self._evidence[server].clear()
            self._ceilings.lost(server, move.ratios[server], self._options.intervals)
        for server in move.giving:
            self._begun_s.pop(server, None)  # the slow start ends, because the server gives up a part of its ratio
        return Outcome(move.ratios, move.reason, interval.silent)

    def _move(self, interval: Interval) -> _Move:
        """Return the new ratios: the ratios after the step, or the present ratios during a hold, within the bounds of
        silent servers and of servers in their slow start. If no server answers, the ratios are the fair shares."""
        extra, fair, silent = self._options.production, interval.fair, interval.silent
        if silent.issuperset(fair):
            return _Move(fair, "no server answers: split by capacity")
        move = _Move(interval.ratios, HOLD) if interval.hold else self._step(interval)
        if interval.hold and not silent and not self._begun_s:
            return move
        floors = {server: extra.probe_floor * share for server, share in fair.items()}
        caps = floors | {i: 1.0 for i in fair if i not in silent}
        starting = {
            i: fair[i] * ramp(interval.now_s - begun_s, extra.slow_start_s, extra.probe_floor)
            for i, begun_s in self._begun_s.items()
            if i not in silent
        }
        if len(starting) + len(silent) == len(fair) and starting:
            # Every server that answers is in its slow start. Together they receive everything except the floors of
            # silent ones.
            rest = 1.0 - sum(floors[server] for server in silent)
            starting = {i: share * rest for i, share in normalised(starting).items()}
        caps |= starting
        floors |= {i: share for i, share in starting.items() if i not in move.giving}
        reason = f"{len(silent)} silent at the probe floor; {move.reason}" if silent else move.reason
        return replace(move, ratios=bounded(move.ratios, floors, caps), reason=reason)

    def _step(self, interval: Interval) -> _Move:
        """Return the step of the servers that answer: some of them give up a part of their ratios, or all ratios
        recover, or the ratios stay."""
        options, extra = self._options, self._options.production
        answering = {i: window for i, window in interval.windows.items() if i not in interval.silent}
        evidence = {i: self._evidence[i].total.distinct for i in answering}
        losing = standing_out(evidence, least_z=extra.confidence_z, min_syn=options.min_syn)
        carried = self._ceilings.carried
        gifts = {i: _gift(interval.ratios[i], carried.get(i), options.delta) for i in losing}
        if extra.slow_factor > 1:
            work = {i: interval.work[i] for i in answering if i in interval.work}
            gifts |= {i: options.delta for i in slow(work, extra.slow_factor, extra.confidence_z) if i not in losing}
        if len(gifts) == len(answering):
            # Every server loses SYNs or is slow. Clients wait longest after a lost SYN, so the slow servers receive
            # what the servers with losses give up.
            gifts = {i: gift for i, gift in gifts.items() if i in losing}
        if gifts:
            receivers = {i: interval.fair[i] for i in answering if i not in gifts}
            ratios = relieve(interval.ratios, gifts, receivers)
            return _Move(ratios, _reason(gifts, losing), frozenset(gifts), frozenset(losing))
        r = [ratio_of_unanswered(window, options.min_syn) for window in answering.values()]
        if all(value is None or value <= extra.quiet_r for value in r):
            aim = self._ceilings.below(interval.fair)
            return _Move(relax(interval.ratios, aim, extra.recovery), "quiet: recovering")
        return _Move(interval.ratios, "no difference beyond chance")


def _gift(ratio: float, carried: float | None, delta: float) -> float:
    """Return the part of its ratio that a server gives up because of lost SYNs, at least delta.

    ``carried`` is the share that the server carried without a loss before recovery exceeded it. The server gives up
    everything above this share.
    """
    return delta if carried is None or ratio <= 0 else max(delta, 1 - carried / ratio)


def _reason(gifts: Mapping[int, float], losing: Mapping[int, float]) -> str:
    named = ", ".join(
        f"{gift:.3f} of {server} ({f'z {losing[server]:.1f}' if server in losing else 'takes long'})"
        for server, gift in list(gifts.items())[:NAMED]
    )
    return f"step: {named}" + (f" and {len(gifts) - NAMED} more" if len(gifts) > NAMED else "")
