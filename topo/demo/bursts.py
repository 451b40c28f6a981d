"""The short loads by which the demo's calibration searches for a suitable request rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from topo.demo.calibration import Burst
from topo.demo.phases import run_phase
from topo.labs.web import Lab
from topo.measure.counts import Observation
from topo.measure.handshakes import Handshakes
from topo.plan.load import Load
from topo.plan.network import SERVER_NAMES


def _r(counts_from: Observation, counts_to: Observation, server: str) -> float:
    r = counts_to.counts[server].since(counts_from.counts[server]).r()
    return math.inf if r is None else r


@dataclass(frozen=True, slots=True)
class Bursts:
    """Offers bursts, and evaluates them. With all servers, a burst lasts `seconds`, and only its second half is
    evaluated, because a server becomes overloaded only after some seconds."""

    lab: Lab
    handshakes: Handshakes
    loaded: str
    seconds: float
    say: Callable[[str], None]

    def equal_split(self, rate_per_s: float) -> Burst:
        """Offer a burst at the ratios in force, which must be equal; print and return its result."""
        phase = run_phase(self.lab, "calibrate", Load(rate_per_s, self.seconds), self.handshakes)
        half, end = phase.started + self.seconds / 2, phase.started + self.seconds
        middle = min(
            (sample.observation for sample in phase.samples), key=lambda observation: abs(observation.time - half)
        )
        burst = Burst(
            rate_per_s=rate_per_s,
            mean_ms=self.handshakes.between(half, end).mean_ms(),
            loaded_r=_r(middle, phase.after, self.loaded),
            healthy_r=max(_r(middle, phase.after, name) for name in SERVER_NAMES if name != self.loaded),
        )
        self.say(
            f"  {rate_per_s:g}/s: mean connect time {burst.mean_ms:.0f} ms; R of {self.loaded} {burst.loaded_r:.2f}, "
            f"of the others {burst.healthy_r:.2f}"
        )
        return burst

    def mean_without_loaded_ms(self, rate_per_s: float) -> float:
        """Offer a burst of half the usual duration while the loaded server is drained; return the mean connect time in
        milliseconds."""
        self.lab.controller.drain(self.loaded, drain=True)
        phase = run_phase(self.lab, "calibrate", Load(rate_per_s, self.seconds / 2), self.handshakes)
        self.lab.controller.drain(self.loaded, drain=False)
        mean_ms = phase.connect.mean_ms()
        self.say(f"  {rate_per_s:g}/s without {self.loaded}: mean connect time {mean_ms:.1f} ms")
        return mean_ms
