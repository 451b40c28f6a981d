"""Fig. 6 of Ohta & Andou: ratios against time, in the lab and simulated; also simulated maps of the parameters Delta
and window."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from experiments.agreement import PART, percent
from experiments.experiment import Axes, Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, chance, mean_of
from experiments.ratios import NEAR, Course, course
from experiments.records import grouped, matching
from experiments.simpool import GIVEN_UP_S, LOADED, simulated
from experiments.variants import PERIOD_S, WINDOW_S
from experiments.webpool import pool, quiet
from sim.demo import PAGE_S
from topo.labs.web import Lab
from topo.plan.load import Load
from topo.plan.network import SERVER_NAMES, Balance
from topo.testbed.nodes import switch_kind

RATE_PER_S = 120.0
"""Requests per second of the standard run, which is made both in the lab and by simulation."""

LAB_S, QUICK_LAB_S = 90.0, 45.0
REPETITIONS, SIMULATIONS = 6, 30
"""Repetitions of the standard run in the lab and by simulation in the full form. Many are needed, because the connect
time depends on the few seconds in which a queue is full."""
CPU = "quota, EEVDF, clients that close"
"""Name of the simulation's CPU model. The name is among a point's parameters, so that runs with another model are made
again."""

MAP_PERIOD_S = 10.0
MAP_S, QUICK_MAP_S = 1800.0, 600.0
DELTAS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9)
WINDOWS_S = (20.0, 50.0, 100.0, 200.0, 400.0)
QUICK_DELTAS = (0.05, 0.1, 0.4, 0.9)
QUICK_WINDOWS_S = (20.0, 200.0)
TOLD_DELTAS, TOLD_WINDOWS_S = (0.02, 0.1, 0.4, 0.9), (20.0, 100.0, 400.0)
"""Values of Delta and window that the page's tables show; the figure shows all values."""
QUICK_SEEDS, SEEDS = (1, 2, 3), (1, 2, 3, 4, 5)
HALVED = 0.5
"""A ratio has clearly fallen if it is below this share of the equal split's ratio."""


@dataclass(frozen=True, slots=True)
class Case:
    """A load of the map: requests per second, and the CPU seconds of each request."""

    rate_per_s: float
    work_s: float


ROOM, SCARCE = "room to spare", "near capacity"
CASES = {ROOM: Case(RATE_PER_S, PAGE_S), SCARCE: Case(70.0, 15 * PAGE_S)}
"""Loads of the map. In SCARCE, the capacity of the healthy servers is slightly too small, so that a server overflows
when traffic moves to it. In SCARCE, a request costs fifteen times as much CPU time as in ROOM, so that fewer requests
suffice to load the servers."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: the lab, the same run simulated with the lab's arrivals, and the map. All are
    repeated, except the lab's run in the quick form."""
    seconds = QUICK_LAB_S if quick else LAB_S
    both: dict[str, Any] = {
        "rate_per_s": RATE_PER_S,
        "seconds": seconds,
        "period_s": PERIOD_S,
        "window_s": WINDOW_S,
        "delta": 0.1,
    }
    made = [
        Point(f"lab {seconds:g} s #{number}", {**both, "where": "lab"}, seconds + 15, group=f"lab {number}")
        for number in range(1 if quick else REPETITIONS)
    ]
    seeds = QUICK_SEEDS if quick else SEEDS
    made += [
        Point(f"sim {seconds:g} s #{seed}", {**both, "where": "sim", "cpu": CPU, "httperf": True, "seed": seed}, 1)
        for seed in (seeds if quick else range(1, SIMULATIONS + 1))
    ]
    deltas, windows = (QUICK_DELTAS, QUICK_WINDOWS_S) if quick else (DELTAS, WINDOWS_S)
    made += [
        _cell_of_map(case, delta, window, QUICK_MAP_S if quick else MAP_S, seed)
        for seed in seeds
        for case in CASES
        for delta in deltas
        for window in windows
    ]
    return made


def _cell_of_map(case: str, delta: float, window_s: float, seconds: float, seed: int) -> Point:
    parameters = {
        "where": "map",
        "case": case,
        "rate_per_s": CASES[case].rate_per_s,
        "work_s": CASES[case].work_s,
        "seconds": seconds,
        "period_s": MAP_PERIOD_S,
        "window_s": window_s,
        "delta": delta,
        "cpu": CPU,
        "seed": seed,
    }
    return Point(f"map {case} Delta {delta:g} window {window_s:g} s {seconds:g} s #{seed}", parameters, seconds / 400)


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab with one loaded server in paper mode, and yield the measuring function."""
    del group
    with pool(Lab(switch_kind(), Balance("fixed", PERIOD_S, WINDOW_S), say=quiet(say))) as web_pool:
        web_pool.lab.break_server(LOADED)
        web_pool.lab.controller.set_mode("paper")
        yield lambda point: web_pool.run(Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S))


def compute(point: Point) -> Values:
    """Simulate a point, and return the figures of the run."""
    return simulated(point.parameters)


def courses(record: Record) -> Sequence[Course]:
    """Return the course of each server's ratio during the load; the last course belongs to the loaded server."""
    rows = [row for row in record.result["ratios"] if row[0] <= record.parameters["seconds"]]
    times = [row[0] for row in rows]
    return [course(times, [row[number] for row in rows]) for number in range(1, 1 + len(SERVER_NAMES))]


@dataclass(frozen=True, slots=True)
class Seen:
    """Results of repeated runs: the behaviour of the ratios, and connect times in ms."""

    settled: Sequence[float]
    """For each run, the time in seconds after which every ratio remains near its final level."""
    level: Mean
    """Final level (mean over the last third of the run) of the loaded server's ratio."""
    swing: Mean
    """Standard deviation, over the last third of the run, of the ratio that varies most."""
    reversals: Mean
    """Share of decisions that reverse the direction of a ratio, for the ratio with the most reversals."""
    connect: Mean
    late: Mean
    """Mean connect time in the last third of the run, in ms; NaN if not measured."""

    @property
    def cells(self) -> list[str]:
        """Return the results as cells of a table."""
        never = sum(map(math.isinf, self.settled))
        settled = f"never in {never} of {len(self.settled)}" if never else mean_of(self.settled).text(0)
        turns = mean_of([100 * self.reversals.value]).text(0) + " %"
        return [settled, self.level.text(3), self.swing.text(3), turns, self.connect.text(0), self.late.text(0)]


HEADING = [
    "settled (s)",
    "loaded server's ratio then",
    "largest swing",
    "reversals",
    "connect, mean (ms)",
    "in the last third (ms)",
]


def seen(records: Sequence[Record]) -> Seen:
    """Return the results of repeated runs."""
    of_runs = [courses(record) for record in records]
    return Seen(
        [max(course.settled_s for course in run) for run in of_runs],
        mean_of([run[-1].level for run in of_runs]),
        mean_of([max(course.swing for course in run) for run in of_runs]),
        mean_of([max(course.reversals for course in run) for run in of_runs]),
        mean_of([record.result["connect"]["mean_ms"] for record in records]),
        mean_of([record.result["late"]["mean_ms"] for record in records if "late" in record.result]),
    )


Cells = Mapping[tuple[float, float], Seen]
"""Results of a map by Delta and by window in seconds."""


def cells_of_map(records: Sequence[Record], case: str) -> Cells:
    """Return the results of each cell of the map of a case."""
    runs = matching(records, where="map", case=case)
    cells = grouped(runs, lambda record: (record.parameters["delta"], record.parameters["window_s"]))
    return {place: seen(cells[place]) for place in sorted(cells)}


def _agreement(records: Sequence[Record]) -> list[Goal]:
    """Return the goals that simulation and lab agree in the loaded server's ratio, and in the mean connect time."""
    ratio = "the simulation agrees with the lab: the loaded server's ratio within 0.05"
    time = f"the simulation agrees with the lab: the mean connect time within {PART:.0%} of the lab's"
    lab, simulated_too = matching(records, where="lab"), matching(records, where="sim")
    if not lab or not simulated_too:
        return [Goal(ratio, None, "-"), Goal(time, None, "-")]
    first, second = seen(lab), seen(simulated_too)
    off = abs(first.level.value - second.level.value)
    change = second.connect.value / first.connect.value - 1
    return [
        Goal(ratio, off <= NEAR, f"{first.level.text(3)} in the lab, {second.level.text(3)} simulated"),
        Goal(
            time,
            abs(change) <= PART,
            f"{first.connect.text(0)} ms in the lab, {second.connect.text(0)} simulated ({percent(change)})"
            f"{chance(first.connect, second.connect)}",
        ),
    ]


def _falls(lab: Sequence[Record]) -> list[Goal]:
    """Return the goal that the loaded server's ratio falls clearly below an equal split, as in Ohta & Andou's
    figure."""
    if not lab:
        return []
    level, equal = seen(lab).level, 1 / len(SERVER_NAMES)
    text = "the loaded server's ratio falls below half of an equal split's, in the lab"
    return [Goal(text, level.value < HALVED * equal, f"{equal:.3f} to {level.text(3)}")]


def report(records: Sequence[Record]) -> Report:
    """Report a table that compares lab and simulation, and tables of the maps."""
    sides = {"lab": matching(records, where="lab"), "simulated": matching(records, where="sim")}
    rows = [
        [f"{name}, {len(runs)} {'run' if len(runs) == 1 else 'runs'}", *seen(runs).cells]
        for name, runs in sides.items()
        if runs
    ]
    maps = {case: cells for case in CASES if (cells := cells_of_map(records, case))}
    return Report(
        tables=[
            Table(["run", *HEADING], rows),
            *(
                Table(
                    [f"{case}: Delta", "window (s)", *HEADING],
                    [
                        [f"{delta:g}", f"{window:g}", *cell.cells]
                        for (delta, window), cell in cells.items()
                        if delta in TOLD_DELTAS and window in TOLD_WINDOWS_S
                    ],
                )
                for case, cells in maps.items()
            ),
        ],
        goals=[*_falls(sides["lab"]), *_agreement(records)],
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw ratios against time (in the lab, in the simulation, and in an oscillating run), and the maps of Delta and
    window."""
    (ratios, *connects), (oscillation, *swings) = figure.subplots(2, 1 + len(CASES))
    for where, style in (("lab", "-"), ("sim", ":")):
        for record in matching(records, where=where)[:1]:
            _draw_ratios(ratios, record, style, where)
    ratios.set_title("lab (-) and simulation (:)", fontsize="small")
    for record in _swinging(records):
        _draw_ratios(oscillation, record, "-", "")
        delta, window = record.parameters["delta"], record.parameters["window_s"]
        oscillation.set_title(f"{SCARCE}, Delta {delta:g}, window {window:g} s", fontsize="small")
    for case, above, below in zip(CASES, connects, swings, strict=True):
        _draw_map(above, below, cells_of_map(records, case), case)
    for record in (ratios, oscillation, *connects, *swings):
        record.grid(alpha=0.3)
        record.tick_params(labelsize="x-small")


def _swinging(records: Sequence[Record]) -> list[Record]:
    """Return the run near capacity with the largest Delta and the shortest window, in which ratios oscillate most."""
    runs = matching(records, where="map", case=SCARCE)
    return sorted(runs, key=lambda record: (-record.parameters["delta"], record.parameters["window_s"]))[:1]


def _draw_ratios(axes: Axes, record: Record, style: str, where: str) -> None:
    rows = record.result["ratios"]
    for number, name in enumerate(SERVER_NAMES, 1):
        label = f"{name}{' (loaded)' if name == LOADED else ''}" if where != "sim" else None
        axes.plot([row[0] for row in rows], [row[number] for row in rows], style, color=f"C{number}", lw=1, label=label)
    axes.set_xlabel("time (s)", fontsize="x-small")
    axes.set_ylabel("ratio", fontsize="x-small")
    axes.set_ylim(0, None)
    if where != "sim":
        axes.legend(fontsize="xx-small")


def _draw_map(above: Axes, below: Axes, cells: Cells, case: str) -> None:
    """Draw the connect time of the whole run (solid) and of its last third (dashed) in `above`, and the largest swing
    (solid) and the reversals (dotted) in `below`."""
    for number, window in enumerate(sorted({place[1] for place in cells})):
        of_window = {delta: cell for (delta, other), cell in cells.items() if other == window}
        deltas, colour = list(of_window), f"C{number}"
        values = [cell.connect.value for cell in of_window.values()]
        bars = [cell.connect.bar for cell in of_window.values()]
        above.errorbar(deltas, values, yerr=bars, fmt="o-", ms=3, lw=1, color=colour, label=f"window {window:g} s")
        above.plot(deltas, [cell.late.value for cell in of_window.values()], "--", lw=1, color=colour)
        below.plot(deltas, [cell.swing.value for cell in of_window.values()], "o-", ms=3, lw=1, color=colour)
        below.plot(deltas, [cell.reversals.value for cell in of_window.values()], ":", lw=1, color=colour)
    above.set_title(f"{case}: connect (ms), -- last third", fontsize="small")
    above.set_yscale("log")
    below.set_title("largest swing, : reversals", fontsize="small")
    below.set_ylim(0, 0.6)
    below.set_xlabel("Delta", fontsize="x-small")
    if cells:
        above.legend(fontsize="xx-small")


EXPERIMENT = Experiment(
    name="r-fig6",
    title="The ratios against time; Delta and the window",
    source="Ohta & Andou, Fig. 6 and section 4.2",
    about="Three servers, one loaded, R in paper mode from equal ratios; the maps are simulated with T = 10 s. "
    "Settled: each ratio stays within 0.05 of its mean over the last third.",
    points=points,
    place=place,
    compute=compute,
    report=report,
    draw=draw,
    needs_root=True,
)
