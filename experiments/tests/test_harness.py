"""Tests of the harness: stored runs are not repeated, missing runs are measured, and pages without results are
unchanged."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import pytest

from experiments import conditions
from experiments import store as store_module
from experiments.document import page, write_pages
from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.labruns import LabRuns
from experiments.machine import this_machine
from experiments.progress import Progress
from experiments.registry import EXPERIMENTS, UnknownError, chosen
from experiments.runner import measure, missing, plan, write
from experiments.store import Store, StoreError
from topo.results import program
from topo.testbed import REPOSITORY


def test_the_readme_names_the_command_and_where_its_results_are() -> None:
    readme = (REPOSITORY / "README.md").read_text()
    assert "`make experiments`" in readme and "(docs/results/README.md)" in readme


def test_a_page_says_how_often_when_and_with_what_it_was_run(tmp_path: Path) -> None:
    experiment = doubling([])
    store = Store(tmp_path, experiment.name)
    store.add(Record("n=2", {"n": 2}, {"twice": 4}, 1.8e9, 1.0, 0.0, "abc1234"))
    (store.directory / "note.txt").write_text("compilers ran\nbeside it\n")
    text = page(experiment, "quick", Report([]), store)
    for line in (
        "|form|quick (compilers ran beside it)|",
        "|runs each|1|",
        "|days (UTC)|2027-01-15|",
        "|commits|abc1234|",
    ):
        assert line in text
    assert "`make experiments FIG=doubling`" in text and "|goal|" not in text, "there are no goals"


def test_a_series_that_is_gone_on_with_on_another_machine_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = doubling([])
    run(experiment, tmp_path, quick=True)
    first = this_machine()
    other = replace(first, cpu="Another CPU", cores=64)
    monkeypatch.setattr(store_module, "this_machine", lambda: other)
    text = page(experiment, "quick", Report([]), Store(tmp_path, "doubling"))
    assert f"|{first.sentence()}|" in text, "where it is reported is nothing to it"
    run(experiment, tmp_path)
    store = Store(tmp_path, "doubling")
    assert f"|{first.sentence()} and {other.sentence()}|" in page(experiment, "full", Report([]), store)
    store.add(replace(store.known(experiment)[1][0], result={"twice": 4}))
    again = Store(tmp_path, "doubling")
    assert f"|{other.sentence()}|" in page(experiment, "full", Report([]), again), "all is made again"


def test_repeated_runs_days_commits_and_losses_are_distinguished() -> None:
    def runs(*keys: str, program: str = "abc", began: float = 1.8e9) -> list[Record]:
        return [Record(key, {}, {}, began, 1.0, None, program) for key in keys]

    assert conditions.times(runs("a #1", "a #2", "b #1", "b #2")) == "2"
    assert conditions.times(runs("a #1", "a #2", "b")) == "1 to 2"
    assert conditions.days([*runs("a"), *runs("b", began=1.8e9 + 86400)]) == "2027-01-15 to 2027-01-16"
    assert conditions.commits(["", "abc", "abc"]) == "not noted; abc"
    beside = [Record("c", {}, {"lab_program": made_with}, 1.8e9, 1.0, None, "abc") for made_with in ("abc", "def", "")]
    rows = conditions.table("full", beside, [this_machine()]).rows
    assert ["commits of the lab's runs", "abc; def; not noted"] in rows
    assert "load average" not in [name for name, _ in rows]
    passed = {"received": 90, "dropped": 1, "lost_before": 1, "lost_after": 2}
    counted = Record("d", {"seconds": 9.0}, {"switch": passed}, 1.8e9, 1.0, 2.0)
    assert conditions.lost([counted, *beside]) == "3, known of 1 of 4 runs"
    assert conditions.most_per_s([counted]) == "10"
    assert conditions.load([counted, *beside]) == "2 to 2, known of 1 of 4 runs"
    assert conditions.lost([counted]) == "3" and conditions.load([counted]) == "2 to 2"


def test_the_program_is_named_by_its_commit() -> None:
    assert re.fullmatch(r"[0-9a-f]{7,}(, changed)?|", program())


LABS = LabRuns(Path("/nowhere"), Path("/nowhere"))

README = (REPOSITORY / "docs/results/README.md").read_text()


class Interruption(Exception):
    """Raised by a measurement in place of KeyboardInterrupt, to simulate Ctrl-C."""


def doubling(measured: list[str], *, fails_at: str = "") -> Experiment:
    """Return an experiment that doubles numbers.

    It appends to `measured` the groups whose place it opens and the keys of the points that it measures. At the point
    with the key `fails_at`, it raises Interruption.
    """

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
        rows = [[record.key, str(record.result["twice"])] for record in records]
        return Report([Table(["run", "twice"], rows)], [Goal("doubles", True, "all")])

    def draw(records: Sequence[Record], figure: Figure) -> None:
        figure.subplots().plot(
            [record.parameters["n"] for record in records], [record.result["twice"] for record in records]
        )

    return Experiment("doubling", "Doubling", "Nowhere", "Numbers are doubled.", points, report, draw, place)


def run(experiment: Experiment, root: Path, *, quick: bool = False) -> list[str]:
    store = Store(root, experiment.name)
    points = missing(experiment, store, LABS, quick=quick)
    lines: list[str] = []
    measure(experiment, points, store, Progress(points), lines.append, labs=LABS)
    return lines


def test_an_interrupted_run_is_resumed_where_it_was(tmp_path: Path) -> None:
    measured: list[str] = []
    with pytest.raises(Interruption):
        run(doubling(measured, fails_at="n=4"), tmp_path)
    run(doubling(measured), tmp_path)
    assert measured == ["open even", "n=2", "open even", "n=4", "open odd", "n=3"]
    runs = json.loads((tmp_path / "doubling/runs.json").read_text())["runs"]
    assert [(run["key"], run["result"]) for run in runs] == [
        (f"n={n}", {"twice": 2 * n, "nothing": None}) for n in (2, 4, 3)
    ]
    assert run(doubling(measured), tmp_path) == []


def test_a_run_with_other_parameters_is_not_the_same_run(tmp_path: Path) -> None:
    store = Store(tmp_path, "doubling")
    store.add(Record("n=2", {"n": 2, "server": "loaded"}, {"twice": 4}, 0.0, 1.0, 0.0))
    assert [point.key for point in missing(doubling([]), Store(tmp_path, "doubling"), LABS, quick=True)] == ["n=2"]


def test_results_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "doubling").mkdir()
    (tmp_path / "doubling/runs.json").write_text("{")
    with pytest.raises(StoreError, match=r"runs\.json.*move it away"):
        Store(tmp_path, "doubling")
    assert (tmp_path / "doubling/runs.json").read_text() == "{"


def test_the_time_left_follows_how_long_runs_take() -> None:
    points = [Point(str(n), {}, 10.0, "lab") for n in range(4)]
    progress = Progress(points)
    assert progress.heading("doubling", points[0]) == "[1/4] doubling 0; 40 s left"
    progress.finished(points[0], 30.0)
    assert progress.left_s() == pytest.approx(90.0)
    assert progress.heading("doubling", points[1]) == "[2/4] doubling 1; 2 min left"


def test_computed_points_share_the_cores_and_correct_only_their_own_estimate() -> None:
    load, *simulations = Point("load", {}, 40.0, "lab"), *(Point(str(n), {}, 10.0) for n in range(4))
    progress = Progress([load, *simulations], cores=2)
    assert progress.left_s() == pytest.approx(40 + 4 * 10 / 2)
    progress.finished(simulations[0], 30.0)
    assert progress.left_s() == pytest.approx(40 + 3 * 30 / 2)
    assert progress.ending("doubling", simulations[0]) == "[1/5] doubling 0 done; 85 s left"


def in_a_process(point: Point) -> Values:
    """Return the square of the point's number, and the id of the process. The number 0 raises ValueError, and FOR_EVER
    makes the call last ten minutes."""
    n = point.parameters["n"]
    if n == FOR_EVER:
        time.sleep(600)
    if n == 0:
        raise ValueError("nothing to square")
    return {"square": n * n, "process": os.getpid()}


FOR_EVER = 99


def squares(numbers: Sequence[int]) -> list[Point]:
    return [Point(f"n={n}", {"n": n}, 1.0) for n in numbers]


def test_points_without_a_place_are_computed_in_processes_and_kept(tmp_path: Path) -> None:
    experiment = replace(doubling([]), compute=in_a_process)
    store, points, lines = Store(tmp_path, "squares"), squares(range(1, 6)), list[str]()
    measure(experiment, points, store, Progress(points), lines.append, labs=LABS)
    records = Store(tmp_path, "squares").of(points)
    assert [record.result["square"] for record in records] == [1, 4, 9, 16, 25]
    assert os.getpid() not in {record.result["process"] for record in records}
    assert lines[-1].startswith("[5/5] doubling n=") and lines[-1].endswith(" done; 0 s left")


def test_an_interrupt_ends_what_is_being_computed_and_keeps_what_was(tmp_path: Path) -> None:
    experiment = replace(doubling([]), compute=in_a_process)
    store, points = Store(tmp_path, "squares"), squares([1, FOR_EVER])

    def interrupt(line: str) -> None:
        raise Interruption(line)

    since = time.monotonic()
    with pytest.raises(Interruption):
        measure(experiment, points, store, Progress(points), interrupt, labs=LABS)
    assert time.monotonic() - since < 60 and not active_children()
    assert [record.key for record in Store(tmp_path, "squares").of(points)] == ["n=1"]


def test_a_point_that_cannot_be_computed_ends_the_others(tmp_path: Path) -> None:
    experiment, points = replace(doubling([]), compute=in_a_process), squares([0, FOR_EVER])
    with pytest.raises(ValueError, match="nothing to square"):
        measure(experiment, points, Store(tmp_path, "squares"), Progress(points), lambda line: None, labs=LABS)
    assert not active_children()


def lab_points(name: str, count: int, *, read_s: float = 0.1) -> Experiment:
    """Return an experiment whose points read lab runs, which other experiments share; only the first lab run is on
    disk."""

    def points(quick: bool) -> Sequence[Point]:
        del quick
        return [Point(f"n={n}", {"n": n}, 60.0, "lab", f"lab-{n}", read_s) for n in range(count)]

    def is_there(point: Point, labs: LabRuns) -> bool:
        return point.parameters["n"] == 0 and labs is LABS

    return replace(doubling([]), name=name, points=points, is_there=is_there)


def test_runs_that_are_only_read_do_not_shorten_the_estimate_for_the_others(tmp_path: Path) -> None:
    points = missing(lab_points("lab", 3), Store(tmp_path, "lab"), LABS, quick=False)
    assert [point.seconds for point in points] == [0.1, 60.0, 60.0]
    progress = Progress(points)
    progress.finished(points[0], 0.1)
    assert progress.left_s() == pytest.approx(120.0)


def test_a_run_that_several_experiments_take_is_counted_once(tmp_path: Path) -> None:
    """If two experiments need the same missing lab run, the first makes it and the second only reads it (0.1 s). An
    experiment with `read_s` 0 makes its own runs."""
    experiments = [lab_points("first", 2), lab_points("second", 3), lab_points("own", 2, read_s=0.0)]
    stores = {experiment.name: Store(tmp_path, experiment.name) for experiment in experiments}
    work = plan(experiments, stores, LABS, quick=False, again=False)
    assert {name: [point.seconds for point in points] for name, points in work.items()} == {
        "first": [0.1, 60.0],
        "second": [0.1, 0.1, 60.0],
        "own": [60.0, 60.0],
    }


def test_other_sections_make_what_sim_lab_holds_against_the_simulation(tmp_path: Path) -> None:
    labs = LabRuns(tmp_path, tmp_path)
    names = ("r-fig5", "r-unlike", "news-lab", "sim-lab")
    stores = {name: Store(tmp_path, name) for name in names}
    alone, together = (
        plan([EXPERIMENTS[name] for name in selection], stores, labs, quick=False, again=False)["sim-lab"]
        for selection in (names[-1:], names)
    )
    shared = {
        point.key: point.read_s for point, other in zip(together, alone, strict=True) if point.seconds != other.seconds
    }
    borrowed = [point.key for point in alone if {"fig5", "unlike", "scenario"} & set(point.parameters)]
    assert list(shared) == borrowed and len(alone) > len(borrowed)
    assert all(point.seconds == shared[point.key] for point in together if point.key in shared)


def test_an_experiment_has_a_page_and_those_not_run_here_are_kept(tmp_path: Path) -> None:
    docs, experiment = tmp_path / "not/there", doubling([])
    assert write(experiment, Store(tmp_path, "doubling")) is None
    run(experiment, tmp_path, quick=True)
    (tmp_path / "doubling/note.txt").write_text("others ran\nbeside\n")
    store = Store(tmp_path, "doubling")
    written = write(experiment, store)
    assert written is not None and written[0] == "quick"
    (docs / "results").mkdir(parents=True)
    (docs / "results/other.md").write_text("# Other\n")
    write_pages(docs, {"doubling": (experiment, *written, store)})
    text = (docs / "results/doubling.md").read_text()
    assert text.index("# Doubling") < text.index("|doubles|yes|all|") < text.index("|n=2|4|")
    assert (docs / "results/other.md").read_text() == "# Other\n"
    assert (docs / "results/doubling.svg").exists() and (tmp_path / "doubling/doubling.png").exists()
    elsewhere = Store(tmp_path / "elsewhere", "doubling")
    elsewhere.directory.mkdir(parents=True)
    elsewhere.file.write_bytes(gzip.decompress((docs / "results/doubling.json.gz").read_bytes()))
    again = Store(tmp_path / "elsewhere", "doubling")
    report = write(experiment, again)
    assert report is not None and page(experiment, *report, again) == text and "quick (others ran beside)" in text
    run(experiment, tmp_path)
    assert Store(tmp_path, "doubling").known(experiment)[0] == "full"
    (tmp_path / "doubling/note.txt").unlink()
    assert Store(tmp_path, "doubling").note == "", "a note that is taken away does not come back with the runs"


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_the_committed_page_is_that_of_the_committed_runs(name: str, tmp_path: Path) -> None:
    committed = REPOSITORY / "docs/results"
    store = Store(tmp_path, name)
    store.directory.mkdir()
    store.file.write_bytes(gzip.decompress((committed / f"{name}.json.gz").read_bytes()))
    store = Store(tmp_path, name)
    form, records = store.known(EXPERIMENTS[name])
    made = page(EXPERIMENTS[name], form, EXPERIMENTS[name].report(records), store)
    assert made == (committed / f"{name}.md").read_text()
    assert f"({name}.md)" in (committed / "README.md").read_text(), "and the summary has a line of it"


def test_a_page_has_two_short_sentences() -> None:
    for experiment in EXPERIMENTS.values():
        sentences = re.split(r"(?<=\.) (?=[*A-Z])", experiment.about.replace("Fig. ", "Fig."))
        assert len(sentences) <= 2 and max(len(sentence.split()) for sentence in sentences) <= 25, experiment.name


@contextmanager
def files_of_at_most(size: int) -> Generator[None]:
    """Limit the size of files that this process can write, to simulate a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_picture_survives_a_disk_that_fills_while_a_new_one_is_written(tmp_path: Path) -> None:
    experiment, docs = doubling([]), tmp_path / "docs"
    run(experiment, tmp_path, quick=True)
    store = Store(tmp_path, "doubling")
    written = write(experiment, store)
    assert written is not None
    reports = {"doubling": (experiment, *written, store)}
    write_pages(docs, reports)
    before = {path: path.read_bytes() for path in (docs / "results").iterdir()}
    with files_of_at_most(100), pytest.raises(StoreError, match=r"doubling\.part: File too large: make room"):
        write_pages(docs, reports)
    assert {path: path.read_bytes() for path in before} == before


def test_experiments_are_known_by_name() -> None:
    every = [name for name, experiment in EXPERIMENTS.items() if not experiment.switch]
    assert [experiment.name for experiment in chosen([], "embedded")] == every
    assert [experiment.name for experiment in chosen([], "tofino")] == [*EXPERIMENTS]
    with pytest.raises(UnknownError, match="no experiment 'fig-9'; there are: r-fig2, "):
        chosen(["fig-9"], "embedded")
    with pytest.raises(UnknownError, match="r-tofino is about one kind of switch: run it with SWITCH=tofino"):
        chosen(["r-tofino"], "embedded")


@pytest.mark.parametrize(("cores", "minutes"), [(1, 112), (2, 100)])
def test_the_whole_set_in_its_quick_form_takes_as_long_as_documented(cores: int, minutes: float) -> None:
    points = [point for experiment in chosen([], "embedded") for point in experiment.points(True)]
    assert Progress(points, cores).left_s() <= minutes * 60
    assert f"under {minutes} minutes" in README or cores == 1


def test_the_documented_time_of_the_whole_set_in_full_is_right(tmp_path: Path) -> None:
    experiments = chosen([], "embedded")
    stores = {experiment.name: Store(tmp_path, experiment.name) for experiment in experiments}
    work = plan(experiments, stores, LabRuns(tmp_path, tmp_path), quick=False, again=False)
    planned_h = Progress([point for points in work.values() for point in points], cores=2).left_s() / 3600
    said = "some 19 hours"
    assert round(planned_h) == 19
    assert said in README and said in (REPOSITORY / "README.md").read_text()
    assert said in (REPOSITORY / "Makefile").read_text()


@pytest.mark.parametrize("name", list(EXPERIMENTS))
@pytest.mark.parametrize("quick", [True, False])
def test_every_run_has_a_name_of_its_own(name: str, quick: bool) -> None:
    points = EXPERIMENTS[name].points(quick)
    assert len({point.key for point in points}) == len(points) > 0
