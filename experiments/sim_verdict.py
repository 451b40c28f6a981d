"""Verdicts of flash-crowd control in simulated runs that are labelled with the true cause of their degradation."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.experiment import Experiment, Point, Values
from experiments.verdicts import draw, report, values
from sim.causes import judged, plan
from sim.crowd import simulate
from topo.plan.causes import Label

SEEDS, QUICK_SEEDS = 50, 8
_SECONDS = 3.0
"""Approximate seconds to simulate a run, to estimate the time left."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: equally many runs of each label."""
    seeds = range(1, 1 + (QUICK_SEEDS if quick else SEEDS))
    return [Point(f"{label} #{seed}", {"label": label, "seed": seed}, _SECONDS) for label in Label for seed in seeds]


def measure(point: Point) -> Values:
    """Simulate a labelled run, and return figures of the controller's decisions."""
    return values(judged(simulate(plan(Label(point.parameters["label"]), point.parameters["seed"]))))


EXPERIMENT = Experiment(
    name="sim-verdict",
    title="The verdict on labelled runs, simulated",
    source="Beyond Chen & Heidemann",
    about="Four servers at 40 requests/s, the controller's defaults without the second look; after 120 s one thing "
    "goes wrong, or two, or nothing. The verdict is the one that held longest from 10 to 70 s after that.",
    points=points,
    compute=measure,
    report=report,
    draw=draw,
)
