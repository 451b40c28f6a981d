"""Runs that belong to another experiment: read from its results, or made in the same way."""

from __future__ import annotations

from experiments.experiment import Experiment, Point, Record, Say
from experiments.labruns import LabRuns
from experiments.runner import place, recorded
from experiments.store import Store
from topo.results import program


def point_of(experiment: Experiment, key: str) -> Point:
    """Return a point of another experiment's full form by its key."""
    return next(point for point in experiment.points(False) if point.key == key)


def kept(experiment: Experiment, point: Point, labs: LabRuns) -> Record | None:
    """Return the run's record from the results; None if there is none, or if it is older than `labs.since`."""
    records = Store(labs.experiments, experiment.name).of([point])
    return records[0] if records and records[0].began >= labs.since else None


def kept_or_made(experiment: Experiment, point: Point, labs: LabRuns, say: Say) -> Record:
    """Return the run's record from the results, or make the run without storing it there."""
    if known := kept(experiment, point, labs):
        return known
    with place(experiment, point.group, labs, say) as measure_point:
        return recorded(measure_point, point, program())
