"""Lab runs that one experiment borrows from another: read from the other's results, or made in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.experiment import Experiment, Point, Record, Say
from experiments.labruns import LabRuns
from experiments.runner import place, recorded
from experiments.store import Store
from topo.results import program


def point_of(experiment: Experiment, key: str) -> Point:
    """Return the point with the key `key` from the full form of an experiment."""
    return next(point for point in experiment.points(False) if point.key == key)


def kept(experiment: Experiment, point: Point, labs: LabRuns) -> Record | None:
    """Return the record of a point's run from the experiment's results; None if the results contain no record of a run
    that began at `labs.since` or later."""
    records = Store(labs.experiments, experiment.name).of([point])
    return records[0] if records and records[0].began >= labs.since else None


def kept_or_made(experiment: Experiment, point: Point, labs: LabRuns, say: Say) -> Record:
    """Return the record of a point's run from the experiment's results; if there is none, run the point in its lab, and
    do not store the new record."""
    if known := kept(experiment, point, labs):
        return known
    with place(experiment, point.group, labs, say) as measure_point:
        return recorded(measure_point, point, program())


def beside(key: str, own: Point, simulated_s: float, **more: Any) -> Point:
    """Return the point `key`, which reads the lab run of `own`, a point of another experiment, and simulates the same
    conditions. `more`: parameters that are added to those of `own`."""
    parameters, seconds = {**own.parameters, **more}, own.seconds + simulated_s
    return Point(key, parameters, seconds, "lab", lab_run=own.lab_run, read_s=simulated_s)


def seeds_of(number: int, each: int) -> list[int]:
    """Return the seeds of the simulations that are compared with lab run `number`: `each` seeds for every lab run."""
    return list(range(each * number + 1, each * (number + 1) + 1))


SIDES = ("lab", "simulated")


def values_of(records: Sequence[Record], side: str, figure: str) -> list[float]:
    """Return the values of a figure: one for every lab run, or one for every simulation, as `side` selects."""
    if side == "lab":
        return [record.result["lab"][figure] for record in records]
    return [figures[figure] for record in records for figures in record.result["simulated"]]
