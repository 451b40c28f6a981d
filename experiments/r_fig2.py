"""Fig. 2 of Ohta & Andou: the mean connect time against its prediction from R, with one server, up to overload."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import mean_of
from experiments.records import Columns, grouped, matching, table
from experiments.syntimers import FIRST_S, SynTimers, timers
from experiments.webpool import pool, quiet
from topo.labs import webservers
from topo.labs.web import Lab
from topo.plan.load import Load
from topo.plan.network import LOAD_CLIENT, SERVER_NAMES, Balance
from topo.testbed.nodes import switch_kind

SERVER = SERVER_NAMES[0]
BACKLOG = 4
"""Length of the accept queue. A queue this short overflows at rates that the server sustains on average, so SYN losses
are nearly independent. The longer queue of the other experiments overflows only when the server is overloaded for
seconds; then a connection loses several SYNs in a row."""
RATES_PER_S: Mapping[int, Sequence[float]] = {
    BACKLOG: (10.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 20.0, 24.0),
    webservers.BACKLOG: (20.0, 22.0, 24.0),
}
"""Request rates by length of the accept queue."""
QUICK_RATES_PER_S: Mapping[int, Sequence[float]] = {BACKLOG: (12.0, 14.0, 16.0, 20.0)}
REPETITIONS = 3
LOAD_S = 60.0
QUICK_LOAD_S = 20.0
GIVEN_UP_S = 20.0
"""Seconds after which httperf gives a connection up; most of the client's SYN repetitions come before."""

PREDICTED_ABOVE_R, PREDICTED_BELOW_R = 0.02, 0.5
AGREEMENT = 0.1
CORRELATION = 0.98


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every queue length and rate, repeated in the full form."""
    rates, seconds = (QUICK_RATES_PER_S, QUICK_LOAD_S) if quick else (RATES_PER_S, LOAD_S)
    return [
        Point(
            key=f"queue of {backlog}, {rate:g}/s {seconds:g} s #{number}",
            parameters={
                "backlog": backlog,
                "rate_per_s": rate,
                "seconds": seconds,
                "given_up_s": GIVEN_UP_S,
                "server": f"{SERVER}, loaded",
            },
            seconds=seconds + 8,
            group=f"{backlog} {number}",
        )
        for number in range(1 if quick else REPETITIONS)
        for backlog in rates
        for rate in rates[backlog]
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab, drain all servers except one loaded server, and yield the measuring function."""
    backlog = int(group.split(maxsplit=1)[0])
    with pool(Lab(switch_kind(), Balance("fixed", 1.0, 10.0), say=quiet(say), backlog=backlog)) as web_pool:
        for name in SERVER_NAMES:
            if name != SERVER:
                web_pool.lab.controller.drain(name, drain=True)
        web_pool.lab.break_server(SERVER)

        def measure(point: Point) -> Values:
            load = Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S)
            measured = web_pool.run(load)
            known = timers(web_pool.lab.pid(LOAD_CLIENT.name))
            return {**measured, "timers": {"retries": known.retries, "linear": known.linear}}

        yield measure


def r_of(record: Record, *, every: bool = False) -> float:
    """Return R of a run: lost SYNs per answered SYN. With `every`, repeated SYN-ACKs of the server also count as
    answers."""
    counts = record.result["servers"][SERVER]
    answers = counts["synack"] + (counts["synack_again"] if every else 0)
    return (counts["syn"] - answers) / answers


def connect_s(record: Record) -> float:
    """Return the mean connect time in seconds of the connections that were answered."""
    return record.result["connect"]["answered_mean_ms"] / 1000


def predicted_s(record: Record) -> float:
    """Return the mean connect time in seconds that R and the client's SYN timers predict."""
    return SynTimers(**record.result["timers"]).connect_s(r_of(record), record.parameters["given_up_s"])


def error_of(record: Record) -> float:
    """Return the relative difference of the measured mean connect time from the predicted time."""
    return connect_s(record) / predicted_s(record) - 1


def _mean(runs: Sequence[Record], read: Callable[[Record], float], digits: int = 0) -> str:
    return mean_of([read(record) for record in runs]).text(digits)


def _given_up(runs: Sequence[Record]) -> str:
    given_up, begun = (sum(record.result["connect"][what] for record in runs) for what in ("given_up", "begun"))
    return f"{given_up} of {begun}"


def _table(records: Sequence[Record]) -> Table:
    columns: Columns[float] = {
        f"requests/s, accept queue of {records[0].parameters['backlog']}": lambda rate, _: f"{rate:g}",
        "R": lambda _, runs: _mean(runs, r_of, 3),
        "R of every SYN-ACK": lambda _, runs: _mean(runs, lambda record: r_of(record, every=True), 3),
        "connect, mean (ms)": lambda _, runs: _mean(runs, lambda record: 1000 * connect_s(record)),
        "predicted from R (ms)": lambda _, runs: _mean(runs, lambda record: 1000 * predicted_s(record)),
        "never answered": lambda _, runs: _given_up(runs),
    }
    return table(columns, dict(sorted(grouped(records, lambda record: record.parameters["rate_per_s"]).items())))


def _low(records: Sequence[Record]) -> list[Record]:
    """Return the runs with an R in the range in which the prediction is tested."""
    return [record for record in records if PREDICTED_ABOVE_R <= r_of(record) <= PREDICTED_BELOW_R]


def report(records: Sequence[Record]) -> Report:
    """Report the connect time compared with its prediction from R."""
    standard = matching(records, backlog=BACKLOG)
    longer = [record for record in records if record.parameters["backlog"] != BACKLOG]
    rs, connects = [r_of(record) for record in standard], [connect_s(record) for record in standard]
    low = _low(standard)
    worst = max((abs(error_of(record)) for record in low), default=None)
    spread = len(set(rs)) > 1 and len(set(connects)) > 1
    correlation = statistics.correlation(rs, connects) if spread else None
    slope = statistics.linear_regression(rs, connects).slope if spread else None
    return Report(
        tables=[_table(runs) for runs in (standard, longer) if runs],
        goals=[
            Goal(
                "R up to 0.5: within 10 % of what the client's SYN timers predict",
                None if worst is None else worst <= AGREEMENT,
                "no run in that range" if worst is None else f"at most {worst:.1%} off in {len(low)} runs",
            ),
            Goal(
                "correlation of R and connect time at least 0.98",
                None if correlation is None else correlation >= CORRELATION,
                "-" if correlation is None else f"{correlation:.4f}",
            ),
            Goal(
                f"the connect time rises by the first SYN timeout, {1000 * FIRST_S:,.0f} ms, per R: within 10 %",
                None if slope is None else abs(slope / FIRST_S - 1) <= AGREEMENT,
                "-" if slope is None else f"{1000 * slope:,.0f} ms (fitted line)",
            ),
        ],
        summary={"correlation": correlation, "slope_s": slope, "worst_error": worst},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw connect time and R against the request rate, and connect time against R."""
    left, right = figure.subplots(1, 2)
    standard = matching(records, backlog=BACKLOG)
    ordered = sorted(standard, key=lambda record: record.parameters["rate_per_s"])
    rates = [record.parameters["rate_per_s"] for record in ordered]
    left.plot(rates, [1000 * connect_s(record) for record in ordered], "o", label="connect time, mean")
    left.plot(rates, [1000 * r_of(record) for record in ordered], "x", label="R x 1 s")
    left.plot(rates, [1000 * r_of(record, every=True) for record in ordered], "+", label="R of every SYN-ACK x 1 s")
    left.set_xlabel("requests per s")
    left.set_ylabel("ms")
    right.plot(
        [r_of(record) for record in ordered], [1000 * connect_s(record) for record in ordered], "o", label="measured"
    )
    by_r = sorted(ordered, key=r_of)
    right.plot(
        [r_of(record) for record in by_r],
        [1000 * predicted_s(record) for record in by_r],
        "-",
        label="by the SYN timers",
    )
    longer = [record for record in records if record.parameters["backlog"] != BACKLOG]
    if longer:
        label = f"measured, accept queue of {longer[0].parameters['backlog']}"
        right.plot(
            [r_of(record) for record in longer], [1000 * connect_s(record) for record in longer], "^", label=label
        )
    right.set_xlabel("R")
    for axes in (left, right):
        axes.legend(fontsize="small")
        axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="r-fig2",
    title="R and the connect time",
    source="Ohta & Andou, Fig. 2",
    about="One Apache server with a tenth of a CPU shared with `stress`; httperf asks for files of 100,000 "
    "bytes. The prediction loses each SYN with probability R / (1 + R) and repeats it as the client's "
    "kernel does.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
