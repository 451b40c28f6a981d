"""The harness: what is there is kept, what is missing is measured, the document keeps what it has no results for."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from experiments.document import section, write_document
from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.progress import Progress
from experiments.registry import EXPERIMENTS, UnknownError, chosen
from experiments.runner import measure, missing, write
from experiments.store import Store, StoreError
from topo.switches import REPOSITORY

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def test_the_readme_names_the_command_and_where_its_results_are() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    assert "`make experiments`" in readme and "(docs/results.md)" in readme


def test_a_note_on_the_runs_is_in_their_section(tmp_path: Path) -> None:
    experiment = doubling([])
    store = Store(tmp_path, experiment.name)
    report = Report([])
    assert "FIG=doubling`, quick, on" in section(experiment, "quick", report, store)
    store.directory.mkdir()
    (store.directory / "note.txt").write_text("compilers ran\nbeside it\n")
    assert "FIG=doubling`, quick (compilers ran beside it), on" in section(experiment, "quick", report, store)


class Interruption(Exception):
    """Somebody presses Ctrl-C."""


def doubling(measured: list[str], *, fails_at: str = "") -> Experiment:
    """Return an experiment that doubles numbers, and notes which."""

    def points(quick: bool) -> Sequence[Point]:
        return [
            Point(f"n={n}", {"n": n}, 2.0, group="even" if n % 2 == 0 else "odd")
            for n in ((2,) if quick else (2, 4, 3))
        ]

    @contextmanager
    def place(group: str, say: Say) -> Generator[Measure]:
        measured.append(f"open {group}")

        def double(point: Point) -> Values:
            if point.key == fails_at:
                raise Interruption
            measured.append(point.key)
            return {"twice": 2 * point.parameters["n"], "nothing": float("nan")}

        yield double

    def report(records: Sequence[Record]) -> Report:
        rows = [[one.key, str(one.result["twice"])] for one in records]
        return Report([Table(["run", "twice"], rows)], [Goal("doubles", True, "all")], ["It doubles."])

    def draw(records: Sequence[Record], figure: Figure) -> None:
        figure.subplots().plot([one.parameters["n"] for one in records], [one.result["twice"] for one in records])

    return Experiment("doubling", "Doubling", "Nowhere", "Numbers are doubled.", points, place, report, draw)


def run(experiment: Experiment, root: Path, *, quick: bool = False) -> list[str]:
    store = Store(root, experiment.name)
    points = missing(experiment, store, quick=quick)
    lines: list[str] = []
    measure(experiment, points, store, Progress(points), lines.append)
    return lines


def test_an_interrupted_run_is_resumed_where_it_was(tmp_path: Path) -> None:
    measured: list[str] = []
    with pytest.raises(Interruption):
        run(doubling(measured, fails_at="n=4"), tmp_path)
    run(doubling(measured), tmp_path)
    assert measured == ["open even", "n=2", "open even", "n=4", "open odd", "n=3"]
    runs = json.loads((tmp_path / "doubling/runs.json").read_text())["runs"]
    assert [(one["key"], one["result"]) for one in runs] == [
        (f"n={n}", {"twice": 2 * n, "nothing": None}) for n in (2, 4, 3)
    ]
    assert run(doubling(measured), tmp_path) == []


def test_a_run_with_other_parameters_is_not_the_same_run(tmp_path: Path) -> None:
    store = Store(tmp_path, "doubling")
    store.add(Record("n=2", {"n": 2, "server": "loaded"}, {"twice": 4}, 0.0, 1.0, 0.0))
    assert [point.key for point in missing(doubling([]), Store(tmp_path, "doubling"), quick=True)] == ["n=2"]


def test_results_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "doubling").mkdir()
    (tmp_path / "doubling/runs.json").write_text("{")
    with pytest.raises(StoreError, match=r"runs\.json.*move it away"):
        Store(tmp_path, "doubling")
    assert (tmp_path / "doubling/runs.json").read_text() == "{"


def test_the_time_left_follows_how_long_runs_take() -> None:
    points = [Point(str(n), {}, 10.0) for n in range(4)]
    progress = Progress(points)
    assert progress.heading("doubling", points[0]) == "[1/4] doubling 0; 40 s left"
    progress.finished(points[0], 30.0)
    assert progress.left_s() == pytest.approx(90.0)
    assert progress.heading("doubling", points[1]) == "[2/4] doubling 1; 2 min left"


def test_the_document_has_a_section_an_experiment_and_keeps_those_not_run_here(tmp_path: Path) -> None:
    docs, experiment = tmp_path / "docs", doubling([])
    docs.mkdir()
    (docs / "results.md").write_text("# Old\n<!-- begin other -->\n## Other\n<!-- end other -->\n")
    assert write(experiment, Store(tmp_path, "doubling")) is None
    run(experiment, tmp_path, quick=True)
    store = Store(tmp_path, "doubling")
    written = write(experiment, store)
    assert written is not None and written[0] == "quick"
    write_document(docs, {"doubling": (experiment, *written, store)}, ["doubling", "other"])
    text = (docs / "results.md").read_text()
    assert text.index("## Doubling") < text.index("| n=2 | 4 |") < text.index("It doubles.") < text.index("## Other")
    assert "| doubles | yes | all |" in text and "FIG=doubling" in text
    assert (docs / "results/doubling.svg").exists() and (tmp_path / "doubling/doubling.png").exists()
    run(experiment, tmp_path)
    assert Store(tmp_path, "doubling").known(experiment)[0] == "full"


def test_experiments_are_known_by_name() -> None:
    assert [one.name for one in chosen([])] == list(EXPERIMENTS)
    with pytest.raises(UnknownError, match="no experiment 'fig-9'; there are: r-fig2, "):
        chosen(["fig-9"])


def test_the_whole_set_takes_less_than_half_an_hour_in_its_quick_form() -> None:
    assert sum(point.seconds for one in EXPERIMENTS.values() for point in one.points(True)) <= 30 * 60


@pytest.mark.parametrize("name", list(EXPERIMENTS))
@pytest.mark.parametrize("quick", [True, False])
def test_every_run_has_a_name_of_its_own(name: str, quick: bool) -> None:
    points = EXPERIMENTS[name].points(quick)
    assert len({point.key for point in points}) == len(points) > 0
