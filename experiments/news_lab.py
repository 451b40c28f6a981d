"""The figures and tables of paper 003 in the lab, from the runs of `make news` and `make news-overhead`."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments import simulated
from experiments.experiment import Experiment, Measure, Point, Say, Values
from experiments.news_lab_report import draw, report
from topo.errors import LabError
from topo.news.measures import figures
from topo.news.overhead import PERIODS_S, settings_for
from topo.news.programme import COMPRESSION, Planned, compressed, planned, programme
from topo.news.records import made_s, read_records
from topo.news.run import Run, is_done, make_run, static_limit
from topo.news.scenarios import HOT_SPOT, NETWORK, NONE, SCENARIOS, VARIANTS
from topo.news.settings import Settings
from topo.switches import REPOSITORY, switch_kind

RESULTS = REPOSITORY / "results"
TIMES = ("period_s", "before", "after", "ramp_s", "k")
"""What the runs differ in, of the settings."""
READ_S = 1.0
"""Reading a run's records, about."""
QUICK_BEFORE, QUICK_AFTER = 3, 5
"""Intervals."""


def points(quick: bool) -> Sequence[Point]:
    """The crowds of `make news`, and one crowd for each T; quick: with and without control, shorter."""
    kind = switch_kind()
    if quick:
        short = replace(Settings(), before=QUICK_BEFORE, after=QUICK_AFTER)
        runs = [compressed(planned(NETWORK, variant, short), kind) for variant in (NONE, HOT_SPOT)]
        return [_point(one, kind, f"news-lab-quick/{one.name}") for one in runs]
    crowds = [compressed(one, kind) for one in programme(Settings(), quick=False) if not one.scenario.false_alarm]
    sweep = [planned(NETWORK, HOT_SPOT, settings_for(period_s, COMPRESSION[kind])) for period_s in PERIODS_S]
    return [
        *(_point(one, kind, f"news/runs/{one.name}") for one in crowds),
        *(_point(one, kind, f"overhead/runs/T{one.settings.period_s:.0f}", sweep=True) for one in sweep),
    ]


def _point(one: Planned, kind: str, directory: str, *, sweep: bool = False) -> Point:
    settings = one.settings
    times = {name: getattr(settings, name) for name in TIMES}
    period = f"T = {settings.period_s:g} s, " if sweep else ""
    return Point(
        f"{one.name}, {period}{settings.before} + {settings.after} intervals, {kind}",
        {
            "scenario": one.scenario.name,
            "variant": one.variant.name,
            **times,
            "switch": kind,
            "sweep": sweep,
            "directory": directory,
        },
        one.seconds,
        group="lab",
    )


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Every run builds its own lab; one whose records are there is not made again."""
    del group, say

    def measure(point: Point) -> Values:
        parameters = point.parameters
        directory = RESULTS / parameters["directory"]
        run = _run(parameters, directory)
        if not is_done(run, parameters["switch"], directory):
            make_run(run, parameters["switch"], directory, lambda left: None)
        return {**simulated.values(read_records(directory)), "made_s": made_s(directory)}

    yield measure


def expected_s(point: Point) -> float:
    """Return how long a point takes: reading it, if its records are there."""
    directory = RESULTS / point.parameters["directory"]
    try:
        there = is_done(_run(point.parameters, directory), point.parameters["switch"], directory)
    except (FileNotFoundError, LabError):  # the run that it takes its limit from is not there, or limited nothing
        return point.seconds
    return READ_S if there else point.seconds


def _run(parameters: Mapping[str, Any], directory: Path) -> Run:
    scenario, variant = SCENARIOS[parameters["scenario"]], VARIANTS[parameters["variant"]]
    times = {name: parameters[name] for name in TIMES}
    settings = scenario.settle(replace(Settings(), **times))
    static = variant.static_per_s
    if variant.static_from:
        source = read_records(directory.parent / variant.static_from)
        static = static_limit(variant, figures(source, source.window()).limit_mean_per_s, settings.k)
    return Run(scenario, variant, settings, static)


EXPERIMENT = Experiment(
    name="news-lab",
    title="Flash crowds in the lab",
    source="Paper 003, Table I, Figs. 12 to 16, Figs. 19 to 23, Tables II and III",
    about="The paper's testbed (Fig. 17) as a Mininet lab: a bottleneck of 2 Mbit/s, a target, a slow target, a "
    "bystander with a bulk transfer and web requests. The runs are those of `make news` and `make news-overhead`.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
    expected_s=expected_s,
)
