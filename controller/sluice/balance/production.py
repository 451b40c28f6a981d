"""Production mode: Ohta & Andou's step with confidence, recovery, ejection, flood freeze and slow start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .confidence import standing_out
from .counts import Counts
from .diagnosis import Condition, Diagnosis
from .metric import ratio_of_unanswered
from .options import BalanceOptions
from .ratios import Ratios, bounded, normalised
from .recovery import ramp, relax
from .slowness import Work, slow
from .step import proportional_step, relieve

HELD = "held: no server is the cause"
NAMED = 3
"""So many of the servers that give are named in a decision's reason."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What a production decision is made from."""

    ratios: Mapping[int, float]
    """Over the servers that are not draining."""
    fair: Mapping[int, float]
    aim: Mapping[int, float]
    """What recovery leads to: the fair shares, below those at which servers lost SYNs."""
    tried: Mapping[int, float]
    """Shares that servers carried without a loss before recovery went beyond: they give what they have more."""
    windows: Mapping[int, Counts]
    evidence: Mapping[int, Counts]
    """As ``windows``, since a server last gave for what it lost: losses are acted on once."""
    silent: frozenset[int]
    """Silent servers; ignored in a panic."""
    ages_s: Mapping[int, float]
    """Seconds since a server joined or came back; of those in their slow start."""
    diagnosis: Diagnosis
    held: bool = False
    """The cause of what was counted is no server."""
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
    """Those that give for SYNs that they lost."""


def production_step(situation: Situation, options: BalanceOptions) -> Move:
    """One decision: the new ratios and why they are what they are.

    No verdict on what was counted keeps a silent server's share: frozen ratios change by its floor, and by slow starts.
    """
    extra = options.production
    fair = situation.fair
    if situation.diagnosis.condition is Condition.PANIC:
        return Move(dict(fair), "panic: split by capacity")
    reason = HELD if situation.held else "frozen" if situation.diagnosis.freeze else None
    move = Move(dict(situation.ratios), reason) if reason else _move(situation, options)
    if reason and not situation.silent and not situation.ages_s:
        return move
    floors = {server: extra.probe_floor * share for server, share in fair.items()}
    caps = floors | {i: 1.0 for i in fair if i not in situation.silent}
    starting = {i: ramp(age_s, extra.slow_start_s, extra.probe_floor) for i, age_s in situation.ages_s.items()}
    starting = {i: part * fair[i] for i, part in starting.items() if i not in situation.silent}
    if len(starting) + len(situation.silent) == len(fair) and starting:
        # Nothing is left for others: what silent servers do not take is theirs.
        left = 1.0 - sum(floors[server] for server in situation.silent)
        starting = {i: share * left for i, share in normalised(starting).items()}
    caps |= starting
    floors |= {i: share for i, share in starting.items() if i not in move.gave}
    reason = f"{len(situation.silent)} silent at the probe floor; {move.reason}" if situation.silent else move.reason
    return Move(bounded(move.ratios, floors, caps), reason, move.gave, move.lost)


def _move(situation: Situation, options: BalanceOptions) -> Move:
    extra = options.production
    answering = {i: w for i, w in situation.windows.items() if i not in situation.silent}
    losing = standing_out(
        {i: situation.evidence[i] for i in answering},
        alpha=extra.alpha,
        beta=extra.beta,
        least_z=extra.confidence_z,
        min_syn=options.min_syn,
    )
    parts = {i: _gift(situation.ratios[i], situation.tried.get(i), options.delta) for i in losing}
    if extra.slow_factor > 1:
        work = {i: situation.work[i] for i in answering if i in situation.work}
        for i, times in slow(work, extra.slow_factor, extra.confidence_z).items():
            parts[i] = max(parts.get(i, 0.0), proportional_step(times, extra.slow_factor, options.delta))
    if len(parts) == len(answering):
        # Nobody is left to give to but those that only take long: a lost SYN is a longer wait.
        parts = {i: part for i, part in parts.items() if i in losing}
    if parts:
        receivers = {i: situation.fair[i] for i in answering if i not in parts}
        ratios = relieve(situation.ratios, parts, receivers)
        return Move(ratios, _reason(parts, losing), frozenset(parts), frozenset(losing))
    r = [ratio_of_unanswered(window, options.min_syn) for window in answering.values()]
    if all(value is None or value <= extra.quiet_r for value in r):
        return Move(relax(situation.ratios, situation.aim, extra.recovery), "quiet: recovering")
    return Move(dict(situation.ratios), "no difference beyond chance")


def _gift(ratio: float, carried: float | None, delta: float) -> float:
    """The part of its ratio that a server gives which loses SYNs: all beyond what it carried, delta at least."""
    return delta if carried is None or ratio <= 0 else max(delta, 1 - carried / ratio)


def _reason(parts: Mapping[int, float], losing: Mapping[int, float]) -> str:
    giving = ", ".join(
        f"{part:.3f} of {server} ({f'z {losing[server]:.1f}' if server in losing else 'takes long'})"
        for server, part in list(parts.items())[:NAMED]
    )
    return f"step: {giving}" + (f" and {len(parts) - NAMED} more" if len(parts) > NAMED else "")
