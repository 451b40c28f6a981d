"""Production mode: Ohta & Andou's step with confidence, slowness, recovery, ejection and slow start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .confidence import standing_out
from .counts import Counts
from .metric import ratio_of_unanswered
from .options import BalanceOptions
from .ratios import Ratios, bounded, normalised
from .recovery import ramp, relax
from .slowness import Work, slow
from .step import relieve

HOLD = "held: no server is the cause"
NAMED = 3
"""Servers that a decision's reason names, of those that give."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The input of a production decision. Every mapping is over the servers that do not drain."""

    ratios: Mapping[int, float]
    fair: Mapping[int, float]
    """Shares by capacity."""
    aim: Mapping[int, float]
    """Shares that recovery leads to: the fair ones, below those at which servers lost SYNs."""
    carried: Mapping[int, float]
    """Shares that servers carried without a loss before recovery exceeded them; a server that loses SYNs again gives
    all above its share here."""
    windows: Mapping[int, Counts]
    evidence: Mapping[int, Counts]
    """The counts of ``windows`` since the server last gave for lost SYNs, so that each loss moves weight once."""
    silent: frozenset[int]
    ages_s: Mapping[int, float]
    """Seconds since a server joined or answered again; only of servers in their slow start."""
    hold: bool = False
    """No server is the cause of the counts: ratios stay."""
    work: Mapping[int, Work] = field(default_factory=dict[int, Work])
    """Open and new connections over the window, where the switch counts them."""


@dataclass(frozen=True, slots=True)
class Move:
    """A production decision."""

    ratios: Ratios
    reason: str
    gave: frozenset[int] = frozenset()
    """Servers that give."""
    lost: frozenset[int] = frozenset()
    """Those that give for lost SYNs."""


def production_step(situation: Situation, options: BalanceOptions) -> Move:
    """Decide the new ratios, and the reason for them.

    Silence outranks a hold: held ratios still change by the floors of silent servers, and by slow starts.
    """
    extra = options.production
    fair = situation.fair
    if situation.silent.issuperset(fair):
        return Move(dict(fair), "no server answers: split by capacity")
    move = Move(dict(situation.ratios), HOLD) if situation.hold else _move(situation, options)
    if situation.hold and not situation.silent and not situation.ages_s:
        return move
    floors = {server: extra.probe_floor * share for server, share in fair.items()}
    caps = floors | {i: 1.0 for i in fair if i not in situation.silent}
    starting = {
        i: fair[i] * ramp(age_s, extra.slow_start_s, extra.probe_floor)
        for i, age_s in situation.ages_s.items()
        if i not in situation.silent
    }
    if len(starting) + len(situation.silent) == len(fair) and starting:
        # Every server that answers is in its slow start: together they take all that the silent ones leave.
        left = 1.0 - sum(floors[server] for server in situation.silent)
        starting = {i: share * left for i, share in normalised(starting).items()}
    caps |= starting
    floors |= {i: share for i, share in starting.items() if i not in move.gave}
    reason = f"{len(situation.silent)} silent at the probe floor; {move.reason}" if situation.silent else move.reason
    return Move(bounded(move.ratios, floors, caps), reason, move.gave, move.lost)


def _move(situation: Situation, options: BalanceOptions) -> Move:
    """The step of the servers that answer: some give, or all recover."""
    extra = options.production
    answering = {i: window for i, window in situation.windows.items() if i not in situation.silent}
    losing = standing_out(
        {i: situation.evidence[i] for i in answering},
        least_z=extra.confidence_z,
        min_syn=options.min_syn,
    )
    gifts = {i: _gift(situation.ratios[i], situation.carried.get(i), options.delta) for i in losing}
    if extra.slow_factor > 1:
        work = {i: situation.work[i] for i in answering if i in situation.work}
        gifts |= {i: options.delta for i in slow(work, extra.slow_factor, extra.confidence_z) if i not in losing}
    if len(gifts) == len(answering):
        # Every server loses SYNs or is slow. A lost SYN is the longer wait, so slow servers receive.
        gifts = {i: gift for i, gift in gifts.items() if i in losing}
    if gifts:
        receivers = {i: situation.fair[i] for i in answering if i not in gifts}
        ratios = relieve(situation.ratios, gifts, receivers)
        return Move(ratios, _reason(gifts, losing), frozenset(gifts), frozenset(losing))
    r = [ratio_of_unanswered(window, options.min_syn) for window in answering.values()]
    if all(value is None or value <= extra.quiet_r for value in r):
        return Move(relax(situation.ratios, situation.aim, extra.recovery), "quiet: recovering")
    return Move(dict(situation.ratios), "no difference beyond chance")


def _gift(ratio: float, carried: float | None, delta: float) -> float:
    """The part of its ratio that a server gives for lost SYNs: all above the share that it carried, at least delta."""
    return delta if carried is None or ratio <= 0 else max(delta, 1 - carried / ratio)


def _reason(gifts: Mapping[int, float], losing: Mapping[int, float]) -> str:
    named = ", ".join(
        f"{gift:.3f} of {server} ({f'z {losing[server]:.1f}' if server in losing else 'takes long'})"
        for server, gift in list(gifts.items())[:NAMED]
    )
    return f"step: {named}" + (f" and {len(gifts) - NAMED} more" if len(gifts) > NAMED else "")
