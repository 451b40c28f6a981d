"""The figures and tables of Chen & Heidemann in the lab, from the runs of `make news` and `make news-overhead`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments import simulated
from experiments.experiment import Experiment, Point, Say, Values
from experiments.labruns import LabRuns, below_results
from experiments.news_lab_report import draw, report
from topo.labs.crowds.programme import COMPRESSION, Planned, compressed, planned, programme
from topo.labs.crowds.run import Run, conditions, is_done, made, make_run, read_records, static_limit, switch_packets
from topo.labs.crowds.series import PERIODS_S, settings_for
from topo.plan.crowd.measures import figures
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, SCENARIOS, VARIANTS, Settings
from topo.testbed.errors import SetupError
from topo.testbed.nodes import KERNEL, switch_kind

VARIED = ("period_s", "before", "after", "ramp_s", "k", "seed")
"""Names of the settings that differ between the runs."""
REPETITIONS = 3
"""Repetitions of all runs in the full form, about 50 minutes each. The first repetition uses the runs of `make news`
and `make news-overhead`; only its run without the switch is additional."""
SEED_STEP = 100
"""Difference between the seeds of two repetitions. The seeds between them are for the hosts of a lab: each host draws
the patience of its clients with a seed slightly above the seed of the run."""
READ_S = 1.0
"""Approximate seconds to read a run's records."""
QUICK_BEFORE, QUICK_AFTER = 3, 5
"""Numbers of detection intervals before and after the crowd's onset in the quick form."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: the crowds of `make news`, one crowd without the switch, and a crowd for each T.

    The full form repeats all points. The quick form has two short runs, with and without control.
    """
    kind = switch_kind()
    if quick:
        short = replace(Settings(), before=QUICK_BEFORE, after=QUICK_AFTER)
        runs = [compressed(planned(NETWORK, variant, short), kind) for variant in (NONE, NEWS)]
        return [
            _point(planned_run, kind, below_results(f"news-lab-quick/{planned_run.name}", kind)) for planned_run in runs
        ]
    return [point for number in range(REPETITIONS) for point in series(kind, number)]


def series(kind: str, number: int) -> Sequence[Point]:
    """Return the points of one repetition. All have the repetition's seed, which determines requests and patience."""
    settings = replace(Settings(), seed=Settings().seed + SEED_STEP * number)
    crowds = [
        compressed(planned_run, kind)
        for planned_run in programme(settings, quick=False)
        if not planned_run.scenario.false_alarm
    ]
    sweep = [replace(settings_for(period_s, COMPRESSION[kind]), seed=settings.seed) for period_s in PERIODS_S]
    own = below_results(f"experiments/news-lab/series-{number + 1}", kind)
    first = number == 0
    crowds_at = below_results("news/runs", kind) if first else own
    sweep_at = below_results("overhead/runs", kind) if first else own
    without = compressed(planned(NETWORK, NONE, settings), kind)
    return [
        *(_point(planned_run, kind, f"{crowds_at}/{planned_run.name}", number) for planned_run in crowds),
        _point(without, KERNEL, f"{own}/without-switch", number),
        *(
            _point(
                planned(NETWORK, HOT_SPOT, settings_of_run),
                kind,
                f"{sweep_at}/T{settings_of_run.period_s:.0f}",
                number,
                sweep=True,
            )
            for settings_of_run in sweep
        ),
    ]


def _point(planned_run: Planned, kind: str, directory: str, number: int = 0, *, sweep: bool = False) -> Point:
    settings = planned_run.settings
    varied = {name: getattr(settings, name) for name in VARIED}
    period = f"T = {settings.period_s:g} s, " if sweep else ""
    return Point(
        f"{planned_run.name}, {period}{settings.before} + {settings.after} intervals, {kind} #{number}",
        {
            "scenario": planned_run.scenario.name,
            "variant": planned_run.variant.name,
            **varied,
            "switch": kind,
            "sweep": sweep,
            "directory": directory,
        },
        planned_run.seconds,
        group="lab",
        lab_run=directory,
        read_s=READ_S,
    )


def take(point: Point, labs: LabRuns, say: Say) -> Values:
    """Return the figures of a run on disk; if the run is missing, build a lab and make the run first."""
    del say
    kind, directory = point.parameters["switch"], labs.at(point.lab_run)
    run = run_of(point.parameters, directory)
    if not is_done(run, kind, directory, labs.since):
        make_run(run, kind, directory, lambda left: None)
    return {
        **simulated.values(read_records(directory)),
        "made": made(directory),
        "conditions": conditions(directory),
        "switch": switch_packets(directory),
    }


def is_there(point: Point, labs: LabRuns) -> bool:
    """Return whether the point's run is on disk."""
    directory = labs.at(point.lab_run)
    try:
        return is_done(run_of(point.parameters, directory), point.parameters["switch"], directory, labs.since)
    except (FileNotFoundError, SetupError):  # the run that provides the static limit is missing, or had no limit
        return False


def run_of(parameters: Mapping[str, Any], directory: Path) -> Run:
    """Return the description of the run in `directory`.

    If the variant's static limit is derived from another run, that run is read from its directory beside `directory`.
    Raises FileNotFoundError if that run is missing, and SetupError if it had no limit.
    """
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
    source="Chen & Heidemann, Table I, Figs. 12 to 16 and 19 to 23, Tables II and III",
    about="The paper's testbed in Mininet, time compressed eightfold, rates and times given in the paper's "
    "scale. Shares agree within 10 points, losses within 3, ratios within a factor of 1.5.",
    points=points,
    take=take,
    is_there=is_there,
    report=report,
    draw=draw,
    needs_root=True,
)
