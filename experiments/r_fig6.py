"""Fig. 6 of paper 000: ratios against time, in the lab and simulated; a map of Delta and windows, simulated."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sluice.balance import BalanceOptions, Mode

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.ratios import Course, course
from experiments.webpool import pool, quiet, times
from sim.pool import PoolPlan, ServerPlan, simulate
from topo.handshakes import ConnectTimes
from topo.httperf import Load
from topo.network import SERVER_CPUS, Lab
from topo.plan import SERVER_NAMES, Balance
from topo.switches import switch_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE_PER_S = 120.0
GIVEN_UP_S = 5.0
LOADED = SERVER_NAMES[-1]
PERIOD_S, WINDOW_S = 1.0, 10.0
"""Of the run that is made both in the lab and by simulation; the map has the paper's period."""

LAB_S, QUICK_LAB_S = 90.0, 45.0
OTHERS = 58.0
"""Tasks beside Apache's workers on the loaded server, simulated: with so many it answers 21 pages/s, as in the lab
before R rises (Fig. 2). `stress` has 24; a worker that wakes up seems to wait for longer than its share of them."""

MAP_PERIOD_S = 10.0
MAP_S, QUICK_MAP_S = 1800.0, 900.0
DELTAS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9)
WINDOWS_S = (20.0, 50.0, 100.0, 200.0, 400.0)
QUICK_DELTAS = (0.05, 0.1, 0.4, 0.9)
QUICK_WINDOWS_S = (20.0, 200.0)
SEEDS = (1, 2, 3)


def points(quick: bool) -> Sequence[Point]:
    """One run in the lab, the same by simulation, and the map."""
    seconds = QUICK_LAB_S if quick else LAB_S
    both: dict[str, Any] = {
        "rate_per_s": RATE_PER_S,
        "seconds": seconds,
        "period_s": PERIOD_S,
        "window_s": WINDOW_S,
        "delta": 0.1,
    }
    made = [Point(f"lab {seconds:g} s", {**both, "where": "lab"}, seconds + 15, group="lab")]
    made += [
        Point(f"sim {seconds:g} s #{seed}", {**both, "where": "sim", "seed": seed}, 5, group="sim") for seed in SEEDS
    ]
    length = QUICK_MAP_S if quick else MAP_S
    for delta in QUICK_DELTAS if quick else DELTAS:
        for window in QUICK_WINDOWS_S if quick else WINDOWS_S:
            for seed in SEEDS[:1] if quick else SEEDS:
                parameters = {
                    "where": "map",
                    "rate_per_s": RATE_PER_S,
                    "seconds": length,
                    "period_s": MAP_PERIOD_S,
                    "window_s": window,
                    "delta": delta,
                    "seed": seed,
                }
                key = f"map Delta {delta:g} window {window:g} s {length:g} s #{seed}"
                made.append(Point(key, parameters, length / 100, group="sim"))
    return made


def simulated(parameters: Mapping[str, Any]) -> Values:
    """Simulate the lab's pool: three servers, the last one sharing its CPU with the tasks of `stress`."""
    options = BalanceOptions(
        mode=Mode.PAPER,
        period_s=parameters["period_s"],
        window_s=parameters["window_s"],
        delta=parameters["delta"],
    )
    servers = [ServerPlan(cpus=SERVER_CPUS, others=OTHERS if name == LOADED else 0.0) for name in SERVER_NAMES]
    run = simulate(
        PoolPlan(
            servers,
            options,
            parameters["rate_per_s"],
            parameters["seconds"],
            timeout_s=GIVEN_UP_S,
            seed=parameters["seed"],
        )
    )

    def between(start: float, end: float) -> ConnectTimes:
        begun = [one for one in run.connections if start <= one.begun_s < end]
        answered = [one.connect_s for one in begun if one.connect_s is not None]
        return ConnectTimes(len(begun), len(begun) - len(answered), answered)

    end = parameters["seconds"]
    return {
        "ratios": [
            [decision.time_s, *(decision.ratios[number] for number in range(len(SERVER_NAMES)))]
            for decision in run.decisions[0]
        ],
        "connect": times(between(0.0, end - GIVEN_UP_S), GIVEN_UP_S),
        "late": times(between(end * 2 / 3, end - GIVEN_UP_S), GIVEN_UP_S),
    }


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab; a simulation needs none."""
    if group == "sim":
        yield lambda point: simulated(point.parameters)
        return
    with pool(Lab(switch_kind(), Balance("fixed", PERIOD_S, WINDOW_S), say=quiet(say))) as one:
        one.lab.break_server(LOADED)
        one.lab.controller.set_mode("paper")
        yield lambda point: one.run(Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S))


def loaded_course(record: Record) -> Course:
    """Return the course of the loaded server's ratio while there was load."""
    rows = [row for row in record.result["ratios"] if row[0] <= record.parameters["seconds"]]
    return course([row[0] for row in rows], [row[-1] for row in rows])


def _seconds(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "never"


def _of(records: Sequence[Record], where: str) -> list[Record]:
    return [one for one in records if one.parameters["where"] == where]


def _best(mapped: Sequence[Record]) -> list[tuple[float, float, float, float, float]]:
    """Return (mean connect time, Delta, window, settled, swing) of each cell, by time over the whole run."""
    cells: dict[tuple[float, float], list[Record]] = {}
    for one in mapped:
        cells.setdefault((one.parameters["delta"], one.parameters["window_s"]), []).append(one)
    return sorted(
        (
            sum(one.result["connect"]["mean_ms"] for one in members) / len(members),
            *cell,
            sum(loaded_course(one).settled_s for one in members) / len(members),
            sum(loaded_course(one).swing for one in members) / len(members),
        )
        for cell, members in cells.items()
    )


def report(records: Sequence[Record]) -> Report:
    """Lab beside simulation, and the map."""
    side = [*_of(records, "lab"), *_of(records, "sim")]
    rows = [
        [
            one.key,
            _seconds(loaded_course(one).settled_s),
            f"{loaded_course(one).level:.3f}",
            f"{loaded_course(one).swing:.3f}",
            f"{one.result['connect']['mean_ms']:,.0f}",
        ]
        for one in side
    ]
    best = _best(_of(records, "map"))
    table = [
        [f"{delta:g}", f"{window:g}", _seconds(settled), f"{swing:.3f}", f"{mean:,.0f}"]
        for mean, delta, window, settled, swing in sorted(best, key=lambda row: row[1:3])
    ]
    lab, simulations = _of(records, "lab"), _of(records, "sim")
    levels = [loaded_course(one).level for one in simulations]
    agree = None if not lab or not levels else min(levels) - 0.05 <= loaded_course(lab[0]).level <= max(levels) + 0.05
    text: list[str] = []
    if best:
        mean, delta, window, settled, swing = best[0]
        text = [
            "The paper leaves open which Delta is best. By the simulation, the mean connect time over the whole run "
            f"({mean:,.0f} ms) is least with Delta = {delta:g} and a window of {window:g} s (settled after "
            f"{_seconds(settled)} s, swing {swing:.3f}); the paper's own choice is 0.1 and 200 s. "
            "One server is loaded all the time here: nothing in this map speaks against a large Delta, which moves as "
            "much when a healthy server loses a SYN by chance."
        ]
    return Report(
        tables=[
            Table(["run", "settled (s)", "loaded server's ratio then", "its swing", "connect, mean (ms)"], rows),
            Table(["Delta", "window (s)", "settled (s)", "swing", "connect, mean (ms)"], table),
        ],
        goals=[
            Goal(
                "the simulation agrees with the lab: the loaded server's ratio within 0.05",
                agree,
                "-"
                if not lab or not levels
                else f"{loaded_course(lab[0]).level:.3f} in the lab, {min(levels):.3f} to {max(levels):.3f} simulated",
            )
        ],
        text=[
            f"Lab and simulation side by side have T = {PERIOD_S:g} s and a window of {WINDOW_S:g} s; the map has the "
            f"paper's T = {MAP_PERIOD_S:g} s. Settled: from when on the loaded server's ratio stays within 0.05 of its "
            "mean over the last third; swing: its standard deviation there.",
            *text,
        ],
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Ratios against time, lab and simulation; the map of connect times."""
    left, right = figure.subplots(1, 2)
    for where, style in (("lab", "-"), ("sim", ":")):
        for one in _of(records, where)[:1]:
            for number, name in enumerate(SERVER_NAMES, 1):
                rows = one.result["ratios"]
                label = f"{name}{' (loaded)' if name == LOADED else ''}, {where}"
                left.plot(
                    [row[0] for row in rows], [row[number] for row in rows], style, color=f"C{number}", label=label
                )
    left.set_xlabel("time (s)")
    left.set_ylabel("ratio")
    left.set_ylim(0, None)
    left.legend(fontsize="x-small")
    left.grid(alpha=0.3)
    best = _best(_of(records, "map"))
    for window in sorted({row[2] for row in best}):
        cells = sorted((row[1], row[0]) for row in best if row[2] == window)
        right.plot([delta for delta, _ in cells], [mean for _, mean in cells], "o-", ms=3, label=f"window {window:g} s")
    right.set_xlabel("Delta")
    right.set_ylabel("connect time, mean (ms), simulated")
    right.set_yscale("log")
    if best:
        right.legend(fontsize="x-small")
    right.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="r-fig6",
    title="The ratios against time; Delta and the window",
    source="Paper 000, Fig. 6",
    about=f"Three servers, one loaded, {RATE_PER_S:g} requests/s, R in paper mode from equal ratios: in the lab, the "
    "same by simulation (`sim/`, with the controller's own algorithms), and by simulation for Delta from 0.02 to 0.9 "
    "and windows from 20 to 400 s.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
