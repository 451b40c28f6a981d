"""Tests of the command `python -m experiments`: stored runs, locking, and messages when it cannot continue."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from experiments import __main__ as command
from experiments.experiment import Experiment, Figure, Measure, Point, Record, Report, Say, Values
from experiments.labruns import RESULTS, LabRuns
from experiments.machine import this_machine
from experiments.registry import EXPERIMENTS
from experiments.store import Store, StoreError
from topo.testbed import REPOSITORY

Run = Callable[..., int]


def squares(measure_point: Measure) -> Experiment:
    """Return an experiment whose points are the numbers 2, 3 and 4; the quick form has only the number 2."""

    def points(quick: bool) -> Sequence[Point]:
        return [Point(f"n={n}", {"n": n}, 1.0, "lab") for n in ((2,) if quick else (2, 3, 4))]

    @contextmanager
    def place(group: str, say: Say) -> Generator[Measure]:
        del group, say
        yield measure_point

    def report(records: Sequence[Record]) -> Report:
        return Report([], summary={record.key: record.result["square"] for record in records})

    def draw(records: Sequence[Record], figure: Figure) -> None:
        figure.subplots().plot([record.result["square"] for record in records])

    return Experiment("squares", "Squares", "Nowhere", "Numbers are squared.", points, report, draw, place)


def square(point: Point) -> Values:
    """Return the square of the point's number."""
    return {"square": point.parameters["n"] ** 2}


def stopped(point: Point) -> Values:
    """Send SIGINT to this process, as Ctrl-C does."""
    os.kill(os.getpid(), signal.SIGINT)
    return square(point)


def killed(point: Point) -> Values:
    """Send SIGKILL to this process, as the kernel does when memory is exhausted."""
    del point
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Return a function that runs the command for one experiment in a temporary directory, and returns the exit
    code."""

    def run(experiment: Experiment, *arguments: str) -> int:
        def chosen(names: Sequence[str], switch: str) -> list[Experiment]:
            del names, switch
            return [experiment]

        monkeypatch.setattr(command, "EXPERIMENTS", {"squares": experiment})
        monkeypatch.setattr(command, "chosen", chosen)
        return command.main(["--output", str(tmp_path), *arguments])

    return run


def squared(root: Path) -> dict[str, float]:
    runs = json.loads((root / "squares/runs.json").read_text())["runs"]
    return {run["key"]: run["result"]["square"] for run in runs}


@pytest.mark.parametrize("form", [["--quick"], []])
def test_what_is_measured_again_replaces_only_itself(run: Run, tmp_path: Path, form: list[str]) -> None:
    assert run(squares(square)) == 0
    made: list[str] = []

    def otherwise(point: Point) -> Values:
        if made:
            return stopped(point)
        made.append(point.key)
        return {"square": -1}

    ends = 0 if form else 128 + signal.SIGINT
    assert run(squares(otherwise), "--again", *form) == ends
    assert squared(tmp_path) == {"n=2": -1, "n=3": 9, "n=4": 16}
    assert Store(tmp_path, "squares").known(squares(square))[0] == "full"


def test_another_run_of_the_same_experiment_is_refused(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path, "squares")
    with store.alone():
        assert run(squares(square)) == 1
        assert f"another run writes into {store.directory}: wait for it, or give another --output" in (
            capsys.readouterr().err
        )
        store.add(Record("n=2", {"n": 2}, {"square": 4}, 0.0, 1.0, 0.0))
        assert run(squares(square), "--report") == 0, "to read is no matter"
    assert run(squares(square)) == 0


def test_a_run_that_waited_reads_the_results_of_the_other_run(tmp_path: Path) -> None:
    early, other = Store(tmp_path, "squares"), Store(tmp_path, "squares")
    with other.alone():
        other.add(Record("n=2", {"n": 2}, {"square": 4}, 0.0, 1.0, 0.0))
    with early.alone():
        early.add(Record("n=3", {"n": 3}, {"square": 9}, 0.0, 1.0, 0.0))
    assert squared(tmp_path) == {"n=2": 4, "n=3": 9}


def test_a_killed_run_leaves_no_process_that_holds_the_lock(tmp_path: Path) -> None:
    """After the command is killed, its lock is free: its processes that computed points have ended with it."""
    program = f"""
import time
from pathlib import Path
from experiments.experiment import Point
from experiments.runner import compute
from experiments.store import Store

with Store(Path({str(tmp_path)!r}), "squares").alone():
    def long(point):
        print("computing", flush=True)
        time.sleep(600)
    compute(long, [Point("n=1", {{}}, 1.0)], lambda point, record: None)
"""
    path = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "controller")])
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"computing\n"
        process.kill()
    deadline = time.monotonic() + 10
    while True:
        try:
            with Store(tmp_path, "squares").alone():
                return
        except StoreError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_results_of_older_programs_are_read_and_kept(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    made_now, read = (
        {"key": key, "parameters": {}, "result": {"made_s": made_s}, "began": 1e9, "seconds": 200.0, "load": 1.5}
        for key, made_s in (("made now", 1e9 + 10), ("read", 1e9 - 86400))
    )
    content = {"machine": asdict(this_machine()), "runs": [made_now | {"program": "abc"}, read | {"program": "abc"}]}
    (tmp_path / "lab/runs.json").write_text(json.dumps(content, indent=1) + "\n")
    store = Store(tmp_path, "lab")
    points = [Point(key, {}, 1.0) for key in ("made now", "read", "new")]
    store.add(Record("new", {}, {"nothing": float("nan")}, 2e9, 1.0, None))
    seen = [(record.began, record.load, record.program) for record in Store(tmp_path, "lab").of(points)]
    assert seen == [(1e9, 1.5, "abc"), (1e9 - 86400, None, ""), (2e9, None, "")], "of the lab, not of the reading"
    assert [record.result for record in Store(tmp_path, "lab").of(points)][1:] == [
        {"made_s": 1e9 - 86400},
        {"nothing": None},
    ]


def test_a_full_disk_is_an_error_with_the_place(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "squares").mkdir()
    (tmp_path / "squares/runs.part").symlink_to("/dev/full")
    assert run(squares(square)) == 1
    assert f"{tmp_path}/squares/runs.part: No space left on device: make room" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert run(squares(square), "--output", str(tmp_path / "file")) == 1
    assert f"{tmp_path}/file/squares: Not a directory: mend that" in capsys.readouterr().err


def test_runs_that_were_not_unpacked_are_named_in_a_line(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "squares").mkdir()
    (tmp_path / "squares/runs.json").write_bytes(gzip.compress(os.urandom(10_000)))
    assert run(squares(square), "--report") == 1
    said = capsys.readouterr().err
    assert f"{tmp_path}/squares/runs.json: UnicodeDecodeError" in said and len(said) < 300


def test_runs_without_what_is_reported_of_them_are_named(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If stored runs lack a field that the report needs, the command fails and the message states the remedy."""
    assert run(squares(lambda point: {"root": point.parameters["n"]})) == 1
    assert "squares/runs.json: its runs have no 'square'" in capsys.readouterr().err
    assert run(squares(square)) == 1, "they count as made"
    assert run(squares(square), "--again") == 0


def test_a_killed_process_is_reported(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def points(quick: bool) -> Sequence[Point]:
        del quick
        return [Point("n=2", {"n": 2}, 1.0)]

    assert run(replace(squares(square), points=points, compute=killed)) == 1
    assert "one of the processes that compute was killed" in capsys.readouterr().err
    assert run(replace(squares(square), points=points, compute=square)) == 0
    assert squared(tmp_path) == {"n=2": 4}


def test_a_missing_switch_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_SWITCH", "/nowhere/sluice-switch")
    assert command.main(["controller-cost", "--quick", "--output", str(tmp_path)]) == 1
    assert "/nowhere/sluice-switch is not there: cargo build --release" in capsys.readouterr().err


def test_a_report_of_nothing_claims_nothing(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(squares(square), "--report") == 1
    said = capsys.readouterr()
    assert f"no runs of squares in {tmp_path}" in said.err and "written" not in said.out
    assert not (tmp_path / "results").exists()


def test_results_of_another_switch_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    any_switch, on_tofino = EXPERIMENTS["r-fig2"], EXPERIMENTS["r-tofino"]

    def of(*arguments: str, experiments: Sequence[Experiment] = (any_switch,)) -> tuple[LabRuns, Path]:
        labs = command.places(command.parse_options(arguments))
        return labs, command.docs_of(labs.experiments, experiments)

    monkeypatch.setenv("SWITCH", "embedded")
    assert of() == (LabRuns(RESULTS / "experiments", RESULTS), REPOSITORY / "docs")
    monkeypatch.setenv("SWITCH", "bmv2")
    own = RESULTS / "experiments-bmv2"
    assert of() == (LabRuns(own, RESULTS), own), "nor are their pages mixed with those of docs/results"
    assert of("--output", "/elsewhere") == (LabRuns(Path("/elsewhere"), Path("/elsewhere")), Path("/elsewhere"))
    before = time.time()
    assert of("--again")[0].since >= before
    monkeypatch.setenv("SWITCH", "tofino")
    own = RESULTS / "experiments-tofino"
    assert of(experiments=[on_tofino]) == (LabRuns(own, RESULTS), REPOSITORY / "docs"), "those that are about it"
    assert of(experiments=[on_tofino, any_switch]) == (LabRuns(own, RESULTS), own)
