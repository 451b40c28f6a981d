"""Tests of several flash crowds with real TCP: each crowd's destination has its own limit, and bystanders have no
limit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise
from pathlib import Path

from topo.labs.crowds.run import BULK_FILE, STATUS, Run, make_run, read_records, refused_of, switch_packets
from topo.plan.crowd.measures import Records
from topo.plan.crowd.network import OTHER, SLOW, TARGET
from topo.plan.crowd.scenarios import NETWORK, PRODUCTION, Further, Scenario, Settings
from topo.plan.outcomes import Ending
from topo.testbed.nodes import switch_kind
from topo.tests import needs
from topo.tests.test_news_crowd import SETTINGS

pytestmark = needs.LONG

SHORT = replace(SETTINGS, period_s=16.0)
"""Settings with a short period. The lab reads the controller's status twice per period, i.e. every second; no limit is
missed, because a limit lasts longer than a second (production.lift_intervals)."""
RISE = 1.1
"""Factor by which the bystanders' request rate rises during the crowds."""


@dataclass(frozen=True)
class Seen:
    """The records of a run; times in seconds since the load began."""

    directory: Path
    records: Records
    limited: list[tuple[float, frozenset[str]]]
    """For each reading of the status: its time, and the services that had a limit."""
    refused: dict[str, int | None]
    """Number of refused SYNs during the complete run, by service; None if the service has no separate count."""

    def spell(self, service: str) -> tuple[float, float]:
        """Return the first and the last time at which a service had a limit."""
        times = [time_s for time_s, services in self.limited if service in services]
        return times[0], times[-1]


def bystanders(numbers: Iterable[int], per_s: float, lasts_s: float) -> tuple[Further, ...]:
    """Return further services that have no crowd; their rate rises by the factor RISE for ``lasts_s`` seconds."""
    return tuple(Further(number, OTHER, per_s, per_s * RISE, lasts_s=lasts_s) for number in numbers)


def make(scenario: Scenario, settings: Settings, directory: Path) -> Seen:
    """Make a run and read its records."""
    make_run(Run(scenario, PRODUCTION, scenario.settle(settings)), switch_kind(), directory, lambda left: None)
    return read(scenario, directory)


def read(scenario: Scenario, directory: Path) -> Seen:
    """Read the records of a run."""
    statuses = [json.loads(line) for line in (directory / STATUS).read_text().splitlines()]
    services = (TARGET, *(service.name for service in scenario.further))
    return Seen(
        directory,
        read_records(directory),
        [
            (status["time_s"], frozenset(row["destination"].split()[0] for row in status["limits"]))
            for status in statuses
        ],
        {service: refused_of(statuses[-1], service) for service in services},
    )


def check_that_only_crowds_are_limited(seen: Seen, crowds: frozenset[str]) -> None:
    """Check that the switch limits exactly the crowds' destinations, and refuses SYNs to these only; that every service
    still answers requests; that established connections stay open; and that the switch loses no packet."""
    records = seen.records
    assert {service for _, services in seen.limited for service in services} == crowds
    for service, refused in seen.refused.items():
        assert refused is not None and (refused > 0) == (service in crowds), service
    served = {
        outcome.server
        for outcome in records.outcomes
        if outcome.due_s > records.onset_s and outcome.ending is Ending.FINISHED
    }
    assert served == set(seen.refused), "crowds and bystanders"
    assert not any(outcome.ending in (Ending.BROKEN, Ending.REFUSED) for outcome in records.outcomes)
    assert (seen.directory / BULK_FILE).read_text().splitlines()[-1].split(",")[2] == "1", "one connection all along"
    assert sum(size for moment, size in records.bulk if moment > records.onset_s + records.period_s) > 0
    passed = switch_packets(seen.directory)
    assert passed is not None and passed["received"] > 0
    assert (passed["lost_before"], passed["lost_after"]) == (0, 0), "but for what the bottleneck dropped"


def test_five_crowds_that_begin_together_have_a_limit_each(tmp_path: Path) -> None:
    settings = replace(SHORT, before=8, after=6, quiet_per_s=1.5)
    sizes = (22.0, 15.0, 11.0, 9.0, 8.0)
    crowds = [Further(number, OTHER, settings.quiet_per_s, size) for number, size in enumerate(sizes[1:], 1)]
    others = bystanders(range(5, 8), settings.quiet_per_s, settings.seconds)
    scenario = replace(NETWORK, web=False, crowd_per_s=sizes[0], further=(*crowds, *others))
    seen = make(scenario, settings, tmp_path / "run")

    every = frozenset({TARGET, *(crowd.name for crowd in crowds)})
    check_that_only_crowds_are_limited(seen, every)
    assert every in [services for _, services in seen.limited], "at once"
    assert all(seen.spell(service)[0] > seen.records.onset_s for service in every)


def test_a_crowd_inside_another_is_limited_and_freed_without_it(tmp_path: Path) -> None:
    """An inner crowd at a slow server begins and ends during an outer crowd, whose answers exceed the link. The inner
    crowd's limit begins and ends without changing the outer crowd's."""
    settings = replace(
        SHORT,
        before=8,
        after=15,
        quiet_per_s=2.0,
        crowd_per_s=40.0,
        patience_s=8.0,
        slow_cost_us=12_000.0,
        slow_memory_mb=84.0,
    )
    lasts_s = 152.0
    inner = Further(1, SLOW, settings.quiet_per_s, 24.0, begins_s=48.0, lasts_s=48.0)
    others = bystanders(range(2, 6), settings.quiet_per_s, lasts_s)
    scenario = replace(NETWORK, web=False, lasts_s=lasts_s, further=(inner, *others))
    seen = make(scenario, settings, tmp_path / "run")

    check_that_only_crowds_are_limited(seen, frozenset({TARGET, inner.name}))
    onset_s, k = seen.records.onset_s, settings.k
    outer_began, outer_ended = seen.spell(TARGET)
    inner_began, inner_ended = seen.spell(inner.name)
    assert onset_s < outer_began < onset_s + inner.begins_s / k < inner_began
    gap_s = max(later - earlier for (earlier, _), (later, _) in pairwise(seen.limited))
    assert onset_s + (inner.begins_s + inner.lasts_s) / k - gap_s < inner_ended < outer_ended
    assert onset_s + lasts_s / k - gap_s < outer_ended < seen.limited[-1][0]
    assert all(TARGET in services for time_s, services in seen.limited if outer_began <= time_s <= outer_ended)
    crowded = [row.limits for row in seen.records.rows if row.time_s <= onset_s + lasts_s / k]
    assert set(dropwhile(lambda limits: not limits, crowded)) == {1, 2}, "nor was it lifted between two looks"
