"""Beyond paper 000: a server repaired after starvation, and one killed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.webpool import pool, quiet
from topo.httperf import Load
from topo.network import Lab
from topo.plan import SERVER_NAMES, Balance
from topo.switches import switch_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE_PER_S = 90.0
GIVEN_UP_S = 5.0
LOADED = SERVER_NAMES[-1]
PERIOD_S, WINDOW_S = 1.0, 10.0
REPAIRED = "repaired after starvation"
KILLED = "killed"


def points(quick: bool) -> Sequence[Point]:
    """Each in paper mode and in production mode, where that makes a difference."""
    seconds = 60.0 if quick else 120.0
    cases = [(case, mode) for case in (REPAIRED, KILLED) for mode in ("paper", "production")]
    return [
        Point(
            key=f"{case}, {mode}, {seconds:g} s",
            parameters={"case": case, "mode": mode, "rate_per_s": RATE_PER_S, "seconds": seconds},
            seconds=seconds + 20,
            group=f"{case}/{mode}",
        )
        for case, mode in cases
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a lab; a third of the load's time in, something happens to the last server."""
    case, mode = group.split("/")
    with pool(Lab(switch_kind(), Balance("fixed", PERIOD_S, WINDOW_S), say=quiet(say))) as one:
        if case == REPAIRED:
            one.lab.break_server(LOADED)

        def measure(point: Point) -> Values:
            load = Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S)
            one.lab.controller.set_mode(mode)
            at = load.seconds / 3
            happening: Mapping[str, Callable[[], None]] = {
                REPAIRED: lambda: one.lab.mend_server(LOADED),
                KILLED: lambda: one.lab.kill_server(LOADED),
            }
            measured = one.run(load, [(at, happening[case])])
            return {**measured, "at_s": at}

        yield measure


def ratios_of(record: Record, start: float, end: float) -> float:
    """Return the last server's mean ratio in a span of time."""
    rows = [row[-1] for row in record.result["ratios"] if start <= row[0] <= end]
    return statistics.fmean(rows) if rows else float("nan")


def _of(records: Sequence[Record], case: str, mode: str) -> Record | None:
    return next((one for one in records if (one.parameters["case"], one.parameters["mode"]) == (case, mode)), None)


def _row(record: Record) -> list[str]:
    end = record.parameters["seconds"]
    at = record.result["at_s"]
    connect, transfer = record.result["connect"], record.result["transfer"]
    return [
        record.parameters["case"],
        record.parameters["mode"],
        f"{ratios_of(record, at - 5, at):.3f}",
        f"{ratios_of(record, end - 5, end):.3f}",
        f"{connect['mean_ms']:,.0f}",
        f"{transfer['mean_ms']:,.0f}",
        f"{transfer['given_up']} of {transfer['begun']}",
    ]


def report(records: Sequence[Record]) -> Report:
    """The ratios before and at the end, and what was broken."""
    goals: list[Goal] = []
    for mode, recovers in (("paper", False), ("production", True)):
        one = _of(records, REPAIRED, mode)
        if one is not None:
            end = one.parameters["seconds"]
            ratio = ratios_of(one, end - 5, end)
            goals.append(
                Goal(
                    f"repaired server, {mode} mode: {'back at its share' if recovers else 'stays starved'}",
                    (ratio >= 0.28) is recovers,
                    f"ratio {ratio:.3f} at the end",
                )
            )
    heading = [
        "what happens to s3",
        "mode",
        "its ratio before",
        "at the end",
        "connect, mean (ms)",
        "transfer, mean (ms)",
        "given up",
    ]
    return Report(
        tables=[Table(heading, [_row(one) for one in records])],
        goals=goals,
        text=[
            f"It happens a third of the load's time in. T = {PERIOD_S:g} s, window {WINDOW_S:g} s, {RATE_PER_S:g} "
            "requests/s."
        ],
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """The last server's ratio against time."""
    axes = figure.subplots()
    for number, one in enumerate(records):
        rows: list[list[Any]] = one.result["ratios"]
        label = f"{one.parameters['case']}, {one.parameters['mode']} mode"
        axes.plot([row[0] for row in rows], [row[-1] for row in rows], color=f"C{number}", label=label)
        axes.axvline(one.result["at_s"], color="black", alpha=0.2, lw=1)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("ratio of s3")
    axes.set_ylim(0, None)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="r-beyond",
    title="Repaired and killed",
    source="Beyond paper 000",
    about="What the paper does not show: a server that is repaired after it was starved, and one that is killed.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
