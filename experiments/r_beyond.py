"""Cases that Ohta & Andou do not measure: a server that is repaired after starvation, and a server that is killed."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sluice.balance import ProductionOptions

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Values
from experiments.intervals import mean_of
from experiments.records import Columns, grouped, matching, table
from experiments.variants import PERIOD_S, WINDOW_S
from experiments.webpool import SAMPLE_S, pool, quiet
from topo.labs.web import Lab
from topo.measure.httperf import Load
from topo.plan.network import SERVER_NAMES, Balance
from topo.testbed.nodes import switch_kind

RATE_PER_S = 90.0
GIVEN_UP_S = 5.0
LOADED = SERVER_NAMES[-1]
LOAD_S, QUICK_LOAD_S = 120.0, 54.0
"""Seconds of a load. Two thirds of this time follow the event (repair or kill): each period restores a twentieth of the
missing ratio, so a server needs 35 periods from the probe floor (smallest ratio) to BACK."""
REPETITIONS = 3
REPAIRED = "repaired after starvation"
KILLED = "killed"
FAIR = 1 / len(SERVER_NAMES)
BACK = 0.28
"""A server counts as back at its share of connections if its ratio is at least this value."""
STARVED = FAIR / 2
"""A server counts as starved (without enough connections for new measurements) below this ratio."""
FLOOR = FAIR * ProductionOptions().probe_floor
"""The ratio that production mode gives to a server that does not answer."""
RESOLUTION = 1e-6
"""Resolution of the ratios that the controller reports."""
EJECTED_S = 2 * PERIOD_S + SAMPLE_S
"""Seconds within which a killed server's ratio must reach FLOOR: two periods, because the first one may contain answers
from before the kill, plus the time between two readings of the ratios."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: each case in paper and production mode; the quick form omits the killed server in
    paper mode."""
    seconds = QUICK_LOAD_S if quick else LOAD_S
    cases = [(case, mode) for case in (REPAIRED, KILLED) for mode in ("paper", "production")]
    if quick:
        cases.remove((KILLED, "paper"))
    return [
        Point(
            key=f"{case}, {mode}, {seconds:g} s #{number}",
            parameters={"case": case, "mode": mode, "rate_per_s": RATE_PER_S, "seconds": seconds},
            seconds=seconds + 20,
            group=f"{case}/{mode}/{number}",
        )
        for number in range(1 if quick else REPETITIONS)
        for case, mode in cases
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a lab, and yield the measuring function: after a third of the load's time, it repairs or kills the last
    server."""
    case, mode, _ = group.split("/")
    with pool(Lab(switch_kind(), Balance("fixed", PERIOD_S, WINDOW_S), say=quiet(say))) as web_pool:
        if case == REPAIRED:
            web_pool.lab.break_server(LOADED)

        def measure(point: Point) -> Values:
            load = Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S)
            web_pool.lab.controller.set_mode(mode)
            at = load.seconds / 3
            happening: Mapping[str, Callable[[], None]] = {
                REPAIRED: lambda: web_pool.lab.mend_server(LOADED),
                KILLED: lambda: web_pool.lab.kill_server(LOADED),
            }
            measured = web_pool.run(load, [(at, happening[case])])
            return {**measured, "at_s": at}

        yield measure


def _happened_s(record: Record) -> float:
    """Return the time of the event (repair or kill) in seconds since the start; the planned time if no time was
    recorded."""
    (at,) = record.result.get("happened_s") or [record.result["at_s"]]
    return at


def _before(record: Record) -> float:
    """Return the last server's ratio immediately before the event (repair or kill)."""
    return [row[-1] for row in record.result["ratios"] if row[0] <= _happened_s(record)][-1]


def _at_end(record: Record) -> float:
    """Return the last server's ratio at the end of the run."""
    return record.result["ratios"][-1][-1]


def _place(record: Record) -> tuple[str, str]:
    return record.parameters["case"], record.parameters["mode"]


def floor_s(record: Record) -> float:
    """Return the seconds from the kill of the last server until its ratio is FLOOR; infinite if this never happens."""
    at = _happened_s(record)
    times = [row[0] for row in record.result["ratios"] if row[0] >= at and row[-1] <= FLOOR + RESOLUTION]
    return min(times) - at if times else math.inf


def _floor(runs: Sequence[Record]) -> str:
    """Return a text: the mean seconds until the killed server's ratio was FLOOR, and the number of runs in which the
    ratio never was FLOOR."""
    after = [floor_s(record) for record in runs]
    known = [seconds for seconds in after if math.isfinite(seconds)]
    never = [f"never in {len(runs) - len(known)} of {len(runs)}"] if len(known) < len(runs) else []
    return ", ".join([*([mean_of(known).text(1)] if known else []), *never])


def _given_up(runs: Sequence[Record]) -> str:
    given_up, begun = (sum(record.result["transfer"][what] for record in runs) for what in ("given_up", "begun"))
    return f"{given_up} of {begun}"


COLUMNS: Columns[tuple[str, str]] = {
    "what happens to s3": lambda place, _: place[0],
    "mode": lambda place, _: place[1],
    "its ratio before": lambda _, runs: mean_of([_before(record) for record in runs]).text(3),
    "at the end": lambda _, runs: mean_of([_at_end(record) for record in runs]).text(3),
    "at the probe floor after (s)": lambda place, runs: _floor(runs) if place[0] == KILLED else "-",
    "connect, mean (ms)": lambda _, runs: mean_of([record.result["connect"]["mean_ms"] for record in runs]).text(0),
    "transfer, mean (ms)": lambda _, runs: mean_of([record.result["transfer"]["mean_ms"] for record in runs]).text(0),
    "given up": lambda _, runs: _given_up(runs),
}


def report(records: Sequence[Record]) -> Report:
    """Report the ratios before the event and at the end, and failed connections."""
    goals: list[Goal] = []
    for mode, what in (("paper", "stays starved"), ("production", "back at its share")):
        if runs := matching(records, case=REPAIRED, mode=mode):
            ratio = mean_of([_at_end(record) for record in runs])
            reached = ratio.value < STARVED if mode == "paper" else ratio.value >= BACK
            goals.append(Goal(f"repaired server, {mode} mode: {what}", reached, f"ratio {ratio.text(3)} at the end"))
    if killed := matching(records, case=KILLED, mode="production"):
        worst = max(floor_s(record) for record in killed)
        goals.append(
            Goal(
                f"killed server, production mode: at the probe floor within {EJECTED_S:g} s (two periods, and the "
                "second from one reading to the next)",
                worst <= EJECTED_S,
                f"after {_floor(killed)} s" if math.isfinite(worst) else _floor(killed),
            )
        )
    return Report(tables=[table(COLUMNS, grouped(records, _place))], goals=goals)


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the ratio of the last server, which is repaired or killed, against time."""
    axes = figure.subplots()
    for number, ((case, mode), runs) in enumerate(grouped(records, _place).items()):
        rows: list[list[Any]] = runs[0].result["ratios"]
        label = f"{case}, {mode} mode"
        axes.plot([row[0] for row in rows], [row[-1] for row in rows], color=f"C{number}", label=label)
        axes.axvline(runs[0].result["at_s"], color="black", alpha=0.2, lw=1)
    axes.set_xlabel("time (s)")
    axes.set_ylabel("ratio of s3")
    axes.set_ylim(0, None)
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="r-beyond",
    title="Repaired and killed",
    source="Beyond Ohta & Andou",
    about="A third of the load in, a starved server is repaired or a server is killed; T = 1 s, window 10 s, 90 "
    "requests/s. What takes over 5 s counts as given up.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
