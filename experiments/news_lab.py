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
from topo.news.records import conditions, made_s, read_records, switch_packets
from topo.news.run import Run, is_done, make_run, results_directory, static_limit
from topo.news.scenarios import HOT_SPOT, NETWORK, NONE, SCENARIOS, VARIANTS
from topo.news.settings import Settings
from topo.router import KERNEL
from topo.switches import REPOSITORY, switch_kind

RESULTS = REPOSITORY / "results"
VARIED = ("period_s", "before", "after", "ramp_s", "k", "seed")
"""What the runs differ in, of the settings."""
REPETITIONS = 3
"""Of the full form: some 50 minutes each.  The first is that of `make news` and `make news-overhead`."""
SEED_STEP = 100
"""Each host of the lab draws its clients' patience from a seed a little above the run's."""
READ_S = 1.0
"""Reading a run's records, about."""
QUICK_BEFORE, QUICK_AFTER = 3, 5
"""Intervals."""


def points(quick: bool) -> Sequence[Point]:
    """The crowds of `make news`, one of them without the switch too, and a crowd for each T, all of it repeated; quick:
    with and without control, shorter, once."""
    kind = switch_kind()
    if quick:
        short = replace(Settings(), before=QUICK_BEFORE, after=QUICK_AFTER)
        runs = [compressed(planned(NETWORK, variant, short), kind) for variant in (NONE, HOT_SPOT)]
        return [_point(one, kind, f"{_below('news-lab-quick', kind)}/{one.name}") for one in runs]
    return [point for number in range(REPETITIONS) for point in _series(kind, number)]


def _series(kind: str, number: int) -> Sequence[Point]:
    """Every run once, with requests and patience of its own."""
    settings = replace(Settings(), seed=Settings().seed + SEED_STEP * number)
    crowds = [compressed(one, kind) for one in programme(settings, quick=False) if not one.scenario.false_alarm]
    sweep = [replace(settings_for(period_s, COMPRESSION[kind]), seed=settings.seed) for period_s in PERIODS_S]
    own = f"{_below('experiments/news-lab/series', kind)}-{number + 1}"
    first = number == 0
    crowds_at = f"{_below('news', kind)}/runs" if first else own
    sweep_at = f"{_below('overhead', kind)}/runs" if first else own
    without = compressed(planned(NETWORK, NONE, settings), kind)
    return [
        *(_point(one, kind, f"{crowds_at}/{one.name}", number) for one in crowds),
        _point(without, KERNEL, f"{own}/without-switch", number),
        *(
            _point(planned(NETWORK, HOT_SPOT, one), kind, f"{sweep_at}/T{one.period_s:.0f}", number, sweep=True)
            for one in sweep
        ),
    ]


def _below(name: str, kind: str) -> str:
    return str(results_directory(name, kind).relative_to(RESULTS))


def _point(one: Planned, kind: str, directory: str, number: int = 0, *, sweep: bool = False) -> Point:
    settings = one.settings
    varied = {name: getattr(settings, name) for name in VARIED}
    period = f"T = {settings.period_s:g} s, " if sweep else ""
    return Point(
        f"{one.name}, {period}{settings.before} + {settings.after} intervals, {kind} #{number}",
        {
            "scenario": one.scenario.name,
            "variant": one.variant.name,
            **varied,
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
        return {
            **simulated.values(read_records(directory)),
            "made_s": made_s(directory),
            "conditions": conditions(directory),
            "switch": switch_packets(directory),
        }

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
    varied = {name: parameters[name] for name in VARIED}
    settings = scenario.settle(replace(Settings(), **varied))
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
    "bystander with a bulk transfer and web requests. The runs are those of `make news` and `make news-overhead`, in "
    "the full form made again with other requests, and one crowd without the switch.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
    expected_s=expected_s,
)
