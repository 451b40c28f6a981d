"""Verdicts of flash-crowd control in lab runs that are labelled with the true cause of their degradation."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from experiments.experiment import Experiment, Measure, Point, Say, Values
from experiments.verdicts import draw, report, values
from topo.labs.causes import END_S, ONSET_S, CausesLab
from topo.plan.causes import SETTLED_S, Label

REPETITIONS = 3
_AROUND_S = 8.0
"""Approximate seconds to build and to take down a lab."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: equally many runs of each label, interleaved so that a slow change of the machine's
    speed affects all labels alike."""
    return [
        Point(f"{label} #{seed}", {"label": label, "seed": seed}, END_S + _AROUND_S, group="lab")
        for seed in range(1, 2 if quick else 1 + REPETITIONS)
        for label in Label
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Yield the measuring function, which builds a new lab for each run, so that the controller has no state from
    earlier runs."""
    del group, say
    yield measure


def measure(point: Point) -> Values:
    """Make the run in a new lab, and return figures of the controller's decisions."""
    with CausesLab(Label(point.parameters["label"])) as lab:
        return values(lab.run(point.parameters["seed"]))


EXPERIMENT = Experiment(
    name="lab-verdict",
    title="The verdict on labelled runs, in the lab",
    source="Beyond Chen & Heidemann",
    about="Four real servers at 40 requests/s, the controller's defaults without the second look; "
    f"after {ONSET_S:g} s one thing goes wrong, or two, or nothing. The verdict is the one that held longest from "
    f"{SETTLED_S:g} to {END_S - ONSET_S:g} s after that.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
