"""The list of runs that `make news` makes, in order, and their estimated durations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from topo.plan.crowd.scenarios import (
    HOT_SPOT,
    NETWORK,
    NEWS,
    NONE,
    PRODUCTION,
    RISING_LOAD,
    SERVER,
    SLOW_CLIENTS,
    STATIC,
    STATIC_SAME,
    Scenario,
    Settings,
    Variant,
)

OVERHEAD_S = 4.0
"""Estimated seconds of a run, in addition to its load, to build and take down the network and to await the beginning of
an interval."""
COMPRESSION = {"embedded": 8.0, "bmv2": 4.0}
"""Time compression k by kind of switch. It is smaller for BMv2, because at k = 8 a crowd without control causes some
9,000 packets/s, which is BMv2's limit on the lab's machine."""
BMV2_FULL_LINK = 2.0
"""Compression k on BMv2 for a crowd without control, which fills the link: at k = 4, BMv2 would lose packets before the
link does."""
STATIC_BEFORE = 1
"""Intervals before the crowd in runs with a static limit, which needs no history."""
CALM_BEFORE, CALM_AFTER = 4, 6
"""Intervals before and after the onset in the false-alarm scenarios."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned run of a scenario under a variant. A static limit that is derived from another run's result is not part
    of the plan."""

    scenario: Scenario
    variant: Variant
    settings: Settings

    @property
    def name(self) -> str:
        """Name of the run, and of the directory of its records."""
        return f"{self.scenario.name}/{self.variant.name}"

    @property
    def seconds(self) -> float:
        """Estimated seconds of the run."""
        return (self.settings.period_s + self.settings.seconds) / self.settings.k + OVERHEAD_S


def planned(scenario: Scenario, variant: Variant, settings: Settings) -> Planned:
    """Return the plan of a run with the scenario's settings and numbers of intervals."""
    settings = scenario.settle(settings)
    if scenario.false_alarm:
        settings = replace(settings, before=CALM_BEFORE, after=CALM_AFTER)
    elif not variant.controls and variant is not NONE:
        settings = replace(settings, before=STATIC_BEFORE)
    return Planned(scenario, variant, settings)


def one_run(scenario: Scenario, variant: Variant, settings: Settings, *, hour: bool) -> Planned:
    """Return the plan of a single run; with `hour`, it lasts half an hour before the onset and half an hour after
    it."""
    run = planned(scenario, variant, settings)
    if not hour:
        return run
    half = math.ceil(1800 / settings.period_s)
    return replace(run, settings=replace(run.settings, before=half, after=half))


def programme(settings: Settings, *, quick: bool) -> Sequence[Planned]:
    """Return the runs in order: a run that needs another run's result comes after that run. `quick`: only three runs of
    the scenario NETWORK, which need no other result."""
    if quick:
        return [planned(NETWORK, variant, settings) for variant in (NONE, HOT_SPOT, PRODUCTION)]
    variants = (NONE, NEWS, HOT_SPOT, STATIC_SAME, *STATIC, PRODUCTION)
    crowds = [planned(scenario, variant, settings) for scenario in (NETWORK, SERVER) for variant in variants]
    return [*crowds, *(planned(scenario, HOT_SPOT, settings) for scenario in (SLOW_CLIENTS, RISING_LOAD))]


def compressed(run: Planned, kind: str) -> Planned:
    """Return a run with the time compression k that a switch of this kind can process."""
    k = COMPRESSION[kind]
    settings = run.settings
    if kind == "bmv2" and run.scenario is NETWORK and run.variant is NONE:
        k = BMV2_FULL_LINK
    if run.variant is PRODUCTION:
        # Production mode must raise its alarm within some real seconds of the onset. The ramp therefore lasts equally
        # many real seconds with every k.
        settings = replace(settings, ramp_s=settings.ramp_s * k / COMPRESSION["embedded"])
    return replace(run, settings=replace(settings, k=k))
