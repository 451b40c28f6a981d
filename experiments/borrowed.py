"""A run that another experiment has made: taken from its results, or made as it makes it."""

from __future__ import annotations

from typing import Any

from experiments.experiment import Experiment, Point, Record, Say
from experiments.labruns import LabRuns, simulated_beside
from experiments.runner import place, recorded
from experiments.store import Store
from topo.program import program


def kept(experiment: Experiment, point: Point, labs: LabRuns) -> Record | None:
    """Return it from the results; None if it is not there, or older than what counts."""
    found = Store(labs.experiments, experiment.name).of([point])
    return found[0] if found and found[0].began >= labs.since else None


def kept_or_made(experiment: Experiment, point: Point, labs: LabRuns, say: Say) -> Record:
    """Return it from the results, or make it; what is made is not put there."""
    if known := kept(experiment, point, labs):
        return known
    with place(experiment, point.group, labs, say) as measure_point:
        return recorded(measure_point, point, program())


def simulated_beside_it(run: Record) -> dict[str, Any]:
    """Return what a result says of such a run that is simulated now."""
    return simulated_beside({"began": run.began, "load": run.load, "program": run.program})
