"""Measures the points that are missing, group by group, and writes what is made of them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from experiments.experiment import Experiment, Point, Record, Report, Say
from experiments.progress import Progress
from experiments.store import Store, without_nan


def missing(experiment: Experiment, store: Store, *, quick: bool) -> list[Point]:
    """Return the points that are still to be measured."""
    return [point for point in experiment.points(quick) if not store.has(point)]


def measure(experiment: Experiment, points: Sequence[Point], store: Store, progress: Progress, say: Say) -> None:
    """Measure points and keep each at once."""
    for group, members in groupby(points, key=lambda point: point.group):
        with experiment.place(group, say) as measure_point:
            for point in members:
                say(progress.heading(experiment.name, point))
                began, since = time.time(), time.monotonic()
                result = measure_point(point)
                seconds = time.monotonic() - since
                store.add(Record(point.key, without_nan(point.parameters), result, began, seconds, os.getloadavg()[0]))
                progress.finished(point, seconds)


def write(experiment: Experiment, store: Store) -> tuple[str, Report] | None:
    """Write summary.json and the pictures of what is there; return the form that was run and the report."""
    form, records = store.known(experiment)
    if not records:
        return None
    report = experiment.report(records)
    content = {"form": form, **asdict(report)}
    (store.directory / "summary.json").write_text(json.dumps(without_nan(content), indent=1) + "\n")
    _draw(experiment, records, [store.directory / f"{experiment.name}.{kind}" for kind in ("png", "svg")])
    return form, report


def _draw(experiment: Experiment, records: Sequence[Record], files: Iterable[Path]) -> None:
    # matplotlib takes a second to import: not before it is needed.
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = experiment.name  # the same picture is the same file
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(8, 5), layout="constrained")
    experiment.draw(records, figure)
    for file in files:
        figure.savefig(file, dpi=120, metadata={"Date": None} if file.suffix == ".svg" else None)
