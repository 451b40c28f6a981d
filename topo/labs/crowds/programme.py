"""Which runs `make news` makes, in which order, and how long they take."""

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
"""Seconds to build the network and take it down, and to await the beginning of an interval."""
COMPRESSION = {"embedded": 8.0, "bmv2": 4.0}
"""Compression k by kind of switch.  At 8 a crowd without control is some 9,000 packets/s, BMv2's limit on the lab's
machine."""
BMV2_FULL_LINK = 2.0
"""k where nothing keeps the link from filling: at 4, BMv2 loses packets before the link does."""
STATIC_BEFORE = 1
"""Intervals before the crowd for a static limit, which needs no history."""
CALM_BEFORE, CALM_AFTER = 4, 6
"""The false-alarm scenarios in their short form."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A scenario under a variant; a static limit taken from another run is filled in later."""

    scenario: Scenario
    variant: Variant
    settings: Settings

    @property
    def name(self) -> str:
        """The directory of the run's records, below the results."""
        return f"{self.scenario.name}/{self.variant.name}"

    @property
    def seconds(self) -> float:
        """Estimated seconds of the run."""
        return (self.settings.period_s + self.settings.seconds) / self.settings.k + OVERHEAD_S


def planned(scenario: Scenario, variant: Variant, settings: Settings) -> Planned:
    """Plan a run."""
    settings = scenario.settle(settings)
    if scenario.false_alarm:
        settings = replace(settings, before=CALM_BEFORE, after=CALM_AFTER)
    elif not variant.controls and variant is not NONE:
        settings = replace(settings, before=STATIC_BEFORE)
    return Planned(scenario, variant, settings)


def one_run(scenario: Scenario, variant: Variant, settings: Settings, *, hour: bool) -> Planned:
    """Plan a run on its own; with `hour`, half an hour before the onset and half an hour after."""
    one = planned(scenario, variant, settings)
    if not hour:
        return one
    half = math.ceil(1800 / settings.period_s)
    return replace(one, settings=replace(one.settings, before=half, after=half))


def programme(settings: Settings, *, quick: bool) -> Sequence[Planned]:
    """Return the runs; a run follows the run whose result it needs."""
    if quick:
        return [planned(NETWORK, variant, settings) for variant in (NONE, HOT_SPOT, PRODUCTION)]
    variants = (NONE, NEWS, HOT_SPOT, STATIC_SAME, *STATIC, PRODUCTION)
    crowds = [planned(scenario, variant, settings) for scenario in (NETWORK, SERVER) for variant in variants]
    return [*crowds, *(planned(scenario, HOT_SPOT, settings) for scenario in (SLOW_CLIENTS, RISING_LOAD))]


def compressed(one: Planned, kind: str) -> Planned:
    """Return a run at the compression that the switch of this kind can carry."""
    k = COMPRESSION[kind]
    settings = one.settings
    if kind == "bmv2" and one.scenario is NETWORK and one.variant is NONE:
        k = BMV2_FULL_LINK
    if one.variant is PRODUCTION:
        # Its alarm is to come within seconds of this clock: the link fills in as many on every switch.
        settings = replace(settings, ramp_s=settings.ramp_s * k / COMPRESSION["embedded"])
    return replace(one, settings=replace(settings, k=k))
