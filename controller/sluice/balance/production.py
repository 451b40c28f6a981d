"""Production mode: the paper's step with confidence, recovery, ejection, flood freeze and slow start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .confidence import deviation, proportional_step, worst_smoothed
from .counts import Counts
from .diagnosis import Condition, Diagnosis
from .metric import ratio_of_unanswered
from .options import BalanceOptions
from .ratios import Ratios, bounded
from .recovery import ramp, relax
from .slowness import Work, slowest
from .step import shift


@dataclass(frozen=True, slots=True)
class Situation:
    """What a production decision is made from."""

    ratios: Mapping[int, float]
    """Over the servers that are not draining."""
    fair: Mapping[int, float]
    windows: Mapping[int, Counts]
    silent: frozenset[int]
    """Silent servers; ignored in a panic."""
    ages_s: Mapping[int, float]
    """Seconds since a server joined or came back."""
    diagnosis: Diagnosis
    work: Mapping[int, Work] = field(default_factory=dict[int, Work])
    """Open and new connections over the window, where the switch counts them."""


def production_step(situation: Situation, options: BalanceOptions) -> tuple[Ratios, str]:
    """One decision: the new ratios and why they are what they are."""
    extra = options.production
    fair = situation.fair
    if situation.diagnosis.condition is Condition.PANIC:
        return dict(fair), "panic: split by capacity"
    if situation.diagnosis.freeze:
        return dict(situation.ratios), "frozen"

    floors = {server: extra.probe_floor * share for server, share in fair.items()}
    caps = {
        server: floors[server]
        if server in situation.silent
        else 1.0
        if (part := ramp(situation.ages_s[server], extra.slow_start_s, extra.probe_floor)) >= 1
        else max(floors[server], part * share)
        for server, share in fair.items()
    }
    proposal, reason = _move(situation, options)
    if situation.silent:
        reason = f"{len(situation.silent)} silent at the probe floor; {reason}"
    return bounded(proposal, floors, caps), reason


def _move(situation: Situation, options: BalanceOptions) -> tuple[Ratios, str]:
    extra = options.production
    answering = {i: w for i, w in situation.windows.items() if i not in situation.silent}
    evident = {i: w for i, w in answering.items() if w.syn >= options.min_syn}
    source = worst_smoothed(evident, extra.alpha, extra.beta)
    if source is not None and len(answering) > 1:
        z = deviation(source, answering)
        step = proportional_step(z, extra.confidence_z, options.delta)
        if step > 0:
            receivers = {i: situation.fair[i] for i in answering if i != source}
            return shift(situation.ratios, source, step, receivers), f"step {step:.3f} (z {z:.1f})"
    slow = slowest({i: situation.work[i] for i in answering if i in situation.work}, extra.slow_factor, extra.slow_open)
    if slow is not None and extra.slow_factor > 0:
        receivers = {i: situation.fair[i] for i in answering if i != slow}
        return shift(situation.ratios, slow, options.delta, receivers), f"step {options.delta:.3f}: {slow} takes long"
    r = [ratio_of_unanswered(window, options.min_syn) for window in answering.values()]
    if all(value is None or value <= extra.quiet_r for value in r):
        return relax(situation.ratios, situation.fair, extra.recovery), "quiet: recovering"
    return dict(situation.ratios), "no difference beyond chance"
