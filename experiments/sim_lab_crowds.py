"""Flash crowds for `sim-lab`: in the lab (the runs of `news-lab`), and simulated with the same settings and
requests."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from experiments import news_lab
from experiments.agreement import PART, percent
from experiments.borrowed import beside, kept, kept_or_made
from experiments.experiment import Goal, Point, Record, Say, Table, Values
from experiments.intervals import Mean, mean_of
from experiments.labruns import LabRuns, simulated_beside
from experiments.news_lab_runs import CROWD
from sim.lab import simulate_lab
from topo.plan.crowd.measures import figures
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, PRODUCTION, SERVER, STATIC, VARIANTS
from topo.testbed.nodes import switch_kind

BELOW, NEAR = (next(variant for variant in STATIC if variant.static_per_s == rate_per_s) for rate_per_s in (30, 40))
"""Variants with a static limit: well below the slow server's capacity, and near the capacity."""
PLACES = (
    *((NETWORK.name, variant.name) for variant in (NONE, NEWS, HOT_SPOT, PRODUCTION)),
    *((SERVER.name, variant.name) for variant in (NONE, BELOW, NEAR, NEWS)),
)
"""Scenario and variant of each crowd that is compared."""
SIMULATED_S = 25.0
"""Approximate seconds to compute a simulation."""
FIGURES = {
    "detected_after_intervals": ("alarm after (intervals)", 2, 1.0),
    "response_loss": ("loss (%)", 1, 100.0),
    "ar_kbps": ("AR (kbit/s)", 0, None),
    "admitted_per_s": ("admitted/s", 0, None),
    "rejected_share": ("rejected (%)", 0, 100.0),
    "bottleneck_used": ("link used (%)", 0, 100.0),
    "bystander_goodput_kbps": ("bulk (kbit/s)", 0, None),
}
"""Title, digits and scale factor of each figure; None: divide by the compression k, to Chen & Heidemann's scale."""
LOSS_POINTS, INTERVALS = 8.0, 0.25
"""Tolerances between simulation and lab: for losses in percentage points, and for the time of the alarm in
intervals."""


def points(number: int) -> list[Point]:
    """Return a point to measure for every crowd, from one series (repetition) of `news-lab`."""
    runs = {name_of(point): point for point in _series(number)}
    return [beside(f"crowd {' '.join(place)} #{number}", runs[place], SIMULATED_S, series=number) for place in PLACES]


def _series(number: int) -> Sequence[Point]:
    """Return the points of a series of `news-lab` whose lab has the switch, with the usual detection interval T."""
    kind = switch_kind()
    return [
        record
        for record in news_lab.series(kind, number)
        if record.parameters["switch"] == kind and not record.parameters["sweep"]
    ]


def _own(point: Point) -> Point:
    """Return the point of `news-lab` with whose lab run the simulation of `point` is compared."""
    return next(
        point_of_lab for point_of_lab in _series(point.parameters["series"]) if name_of(point_of_lab) == name_of(point)
    )


def is_there(point: Point, labs: LabRuns) -> bool:
    """Return whether the lab run of the corresponding point of `news-lab` exists."""
    own = _own(point)
    return kept(news_lab.EXPERIMENT, own, labs) is not None or news_lab.is_there(own, labs)


def measure(point: Point, labs: LabRuns, say: Say) -> Values:
    """Read the lab run of `news-lab`, or make it if it is missing, and simulate the same requests."""
    own = _own(point)
    lab = kept_or_made(news_lab.EXPERIMENT, own, labs, say)
    run = news_lab.run_of(own.parameters, labs.at(own.lab_run))
    records = simulate_lab(run.scenario, run.variant, run.settings, run.static_per_s)
    return {
        "lab": {name: lab.result[CROWD][name] for name in FIGURES},
        "simulated": asdict(figures(records, records.window())),
        **simulated_beside(began=lab.began, load=lab.load, program=lab.program),
    }


# -- the report


def name_of(run: Point | Record) -> tuple[str, str]:
    """Return scenario and variant of a run, which identify the crowd."""
    return run.parameters["scenario"], run.parameters["variant"]


def by_crowd(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return the repeated runs of each crowd, in the order of PLACES."""
    return {place: runs for place in PLACES if (runs := [record for record in records if name_of(record) == place])}


def seen(runs: Sequence[Record], side: str, name: str) -> Mean:
    """Return a figure's mean over repeated runs of one side (`lab` or `simulated`), in the scale of FIGURES."""
    scale = FIGURES[name][2] or 1 / runs[0].parameters["k"]
    return mean_of([value * scale for record in runs if (value := record.result[side][name]) is not None])


def table(records: Sequence[Record]) -> Table:
    """Return a table with two adjacent rows for each crowd: the lab's figures and the simulation's."""
    rows = [
        [f"{' '.join(place)}, {side}", *(seen(runs, side, name).text(FIGURES[name][1]) for name in FIGURES)]
        for place, runs in by_crowd(records).items()
        for side in ("lab", "simulated")
    ]
    return Table(["flash crowd", *(label for label, _, _ in FIGURES.values())], rows)


def goals(records: Sequence[Record], scenario: str) -> list[Goal]:
    """Return the goals that the simulation agrees with the lab in a scenario. A goal names the crowds that miss it, or
    else the crowd that deviates most.

    The alarm under a static limit is left out: runs with a static limit have one interval before the crowd, which is
    too short for a baseline.
    """
    crowds = {variant: runs for (where, variant), runs in by_crowd(records).items() if where == scenario}
    if not crowds:
        return []

    def off(name: str, of: Mapping[str, Sequence[Record]] = crowds) -> Mapping[str, Off | None]:
        return {variant: _off(runs, name) for variant, runs in of.items()}

    decided = {variant: runs for variant, runs in crowds.items() if VARIANTS[variant].static_per_s is None}
    return [
        _goal(
            f"{scenario}: alarm within {INTERVALS:g} intervals of the lab's", off("detected_after_intervals", decided)
        ),
        _goal(f"{scenario}: loss within {LOSS_POINTS:g} points of the lab's", off("response_loss")),
        _goal(f"{scenario}: AR within {PART:.0%} of the lab's", off("ar_kbps")),
        _goal(f"{scenario}: admitted requests within {PART:.0%} of the lab's", off("admitted_per_s")),
    ]


Off = tuple[float, bool, str]
"""Deviation of a figure between simulation and lab, whether it is small enough, and a text that states it."""


def _off(runs: Sequence[Record], name: str) -> Off | None:
    """Return the deviation of a figure between simulation and lab. The deviation is infinite if only one side has
    measured the figure; None if neither has."""
    lab, simulated = (seen(runs, side, name).value for side in ("lab", "simulated"))
    if math.isnan(lab) and math.isnan(simulated):
        return None
    if math.isnan(lab) or math.isnan(simulated):
        return math.inf, False, "only one of both has it"
    if name == "response_loss":
        return abs(simulated - lab), abs(simulated - lab) <= LOSS_POINTS, f"{simulated - lab:+.1f} points"
    if name == "detected_after_intervals":
        return abs(simulated - lab), abs(simulated - lab) <= INTERVALS, f"{simulated - lab:+.2f}"
    if lab == 0:
        return (0.0, True, "+0%") if simulated == 0 else (math.inf, False, f"{simulated:g} instead of 0")
    excess = simulated / lab - 1
    return abs(excess), abs(excess) <= PART, percent(excess)


def _goal(text: str, off: Mapping[str, Off | None]) -> Goal:
    known = {variant: difference for variant, difference in off.items() if difference is not None}
    if not known:
        return Goal(text, None, "-")
    missed = {variant: difference for variant, difference in known.items() if not difference[1]}
    worst = max(known, key=lambda variant: known[variant][0])
    shown = missed or {worst: known[worst]}
    return Goal(text, not missed, ", ".join(f"{said} ({variant})" for variant, (_, _, said) in shown.items()))
