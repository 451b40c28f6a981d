"""Measures the points without results, labs group by group and simulations in parallel, and writes the reports."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import groupby
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from experiments.experiment import Experiment, Measure, Point, Record, Report, Say
from experiments.labruns import LabRuns
from experiments.machine import this_machine
from experiments.progress import Progress
from experiments.store import Store, StoreError, without_nan
from topo.results import program

PR_SET_PDEATHSIG = 1
"""Option of prctl (<linux/prctl.h>) that sets the signal that a process receives when its parent ends."""


def missing(
    experiment: Experiment,
    store: Store,
    labs: LabRuns,
    *,
    quick: bool,
    again: bool = False,
    coming: Collection[str] = (),
) -> list[Point]:
    """Return the points of the form (quick or full) that the store does not contain; with `again`, all its points.

    Points whose lab run needs only to be read have the seconds of reading as their estimate. `coming` are the names of
    the lab runs that other experiments will have made before this experiment begins.
    """
    points = [point for point in experiment.points(quick) if again or not store.has(point)]

    def only_read(point: Point) -> bool:
        if not point.read_s or experiment.is_there is None:
            return False
        return point.lab_run in coming or experiment.is_there(point, labs)

    return [replace(point, seconds=point.read_s) if only_read(point) else point for point in points]


def plan(
    experiments: Sequence[Experiment],
    stores: Mapping[str, Store],
    labs: LabRuns,
    *,
    quick: bool,
    again: bool,
) -> dict[str, list[Point]]:
    """Return the points to measure by name of the experiment, in the order of `experiments`. If several experiments use
    the same lab run, the first of these experiments makes it."""
    work: dict[str, list[Point]] = {}
    for experiment in experiments:
        coming = {point.lab_run for points in work.values() for point in points}
        work[experiment.name] = missing(
            experiment, stores[experiment.name], labs, quick=quick, again=again, coming=coming
        )
    return work


def measure(
    experiment: Experiment, points: Sequence[Point], store: Store, progress: Progress, say: Say, *, labs: LabRuns
) -> None:
    """Measure points, and store each record immediately."""

    def keep(point: Point, record: Record) -> None:
        store.add(record)
        progress.finished(point, record.seconds)

    def keep_and_say(point: Point, record: Record) -> None:
        keep(point, record)
        say(progress.ending(experiment.name, point))

    for group, members in groupby(points, key=lambda point: point.group):
        if not group:
            assert experiment.compute is not None
            compute(experiment.compute, list(members), keep_and_say)
            continue
        with place(experiment, group, labs, say) as measure_point:
            for point in members:
                say(progress.heading(experiment.name, point))
                keep(point, recorded(measure_point, point, program()))


@contextmanager
def place(experiment: Experiment, group: str, labs: LabRuns, say: Say) -> Generator[Measure]:
    """Open the place (such as a lab) of a group, if the group needs a place, and yield the function that measures its
    points."""
    if (take := experiment.take) is not None:
        yield lambda point: take(point, labs, say)
        return
    assert experiment.place is not None
    with experiment.place(group, say) as measure_point:
        yield measure_point


def recorded(measure_point: Measure, point: Point, made_with: str) -> Record:
    """Measure a point, and return its record."""
    began, since = time.time(), time.monotonic()
    result = dict(measure_point(point))
    seconds = time.monotonic() - since
    made: dict[str, Any] = result.pop("made", {})
    load = os.getloadavg()[0]
    record = Record(point.key, without_nan(point.parameters), result, began, seconds, load, made_with)
    return replace(record, **made)


def compute(compute_point: Measure, points: Sequence[Point], keep: Callable[[Point, Record], None]) -> None:
    """Compute points, in a process for each core, and pass each record to `keep`. An interrupt or an error ends all
    processes."""
    with ProcessPoolExecutor(this_machine().cores, get_context("fork"), _obey_the_parent) as processes:
        try:
            running = {processes.submit(recorded, compute_point, point, program()): point for point in points}
            for record in as_completed(running):
                keep(running[record], record.result())
        except BaseException:
            for process in active_children():
                process.terminate()
            raise


def _obey_the_parent() -> None:
    """Let the parent process control this one: ignore SIGINT and SIGHUP, which the parent handles, and end on SIGTERM
    and at the parent's end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)  # a surviving child would keep the parent's lock


def write(experiment: Experiment, store: Store) -> tuple[str, Report] | None:
    """Write summary.json and the pictures from the stored runs; return the runs' form (full or quick) and the report.

    Returns None, and writes nothing, if there are no stored runs.
    Raises StoreError if runs of another program version lack fields that the report needs.
    """
    form, records = store.known(experiment)
    if not records:
        return None
    try:
        report = experiment.report(records)
    except KeyError as error:
        raise StoreError(
            f"{store.file}: its runs have no {error}, which is reported: measure them again (--again), or move it away"
        ) from error
    content = {"form": form, **asdict(report)}
    (store.directory / "summary.json").write_text(json.dumps(without_nan(content), indent=1) + "\n")
    _draw(experiment, records, [store.directory / f"{experiment.name}.{kind}" for kind in ("png", "svg")])
    return form, report


def _draw(experiment: Experiment, records: Sequence[Record], files: Iterable[Path]) -> None:
    # The import of matplotlib takes a second, so it is delayed until a picture is drawn.
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = experiment.name  # makes the SVG file reproducible
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 5), layout="constrained")
    experiment.draw(records, figure)
    for file in files:
        figure.savefig(file, dpi=120, metadata={"Date": None} if file.suffix == ".svg" else None)
