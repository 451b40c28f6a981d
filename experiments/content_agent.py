"""Connections per second of an agent's engine alone, and of each method of content switching in the lab."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from experiments.contentload import Requests, example
from experiments.contentplace import (
    AGENT,
    CHAIN,
    CLIENT,
    LAST,
    LOCATION,
    MAP,
    PLAIN,
    RULES,
    SERIES,
    ContentPlace,
    Series,
)
from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, mean_of
from topo.testbed.errors import SetupError

ASKED = (PLAIN, AGENT, CLIENT, CHAIN, MAP, LOCATION)
ENGINE = "engine"
ROUNDS, QUICK_ROUNDS = 10, 3
SECONDS, QUICK_SECONDS = 10.0, 5.0
REPETITIONS = 3
TIMEOUT_S = 300.0
LEAST_PER_S = 100_000


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: the engine alone, then every series at its highest rate, all series of a repetition
    in one lab."""
    seconds = QUICK_SECONDS if quick else SECONDS
    engine = [Point(f"{ENGINE} #{number}", {}, 5.0, ENGINE) for number in range(QUICK_ROUNDS if quick else ROUNDS)]
    lab = [
        Point(
            f"{series.name}, {seconds:g} s #{number}",
            {"series": series.name, "seconds": seconds},
            seconds + 1,
            f"place {number}",
        )
        for number in range(1 if quick else REPETITIONS)
        for series in ASKED
    ]
    return [*engine, *lab]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Yield the function that measures a point; points of the lab need the open lab, points of the engine alone do
    not."""
    if group == ENGINE:
        yield lambda point: {"per_s": engine_per_s()}
        return
    with ContentPlace(RULES, say) as place:

        def measure(point: Point) -> Values:
            seconds = point.parameters["seconds"]
            result = place.run(SERIES[point.parameters["series"]], Requests([LAST], 0.0, seconds))
            return {**result, "per_s": result["answered"] / seconds}

        yield measure


def engine_per_s() -> float:
    """Run the engine's benchmark and return its connections per second: a million connections on one core, each with
    SYN, request, SYN-ACK and confirmation."""
    command = [example("handshakes")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    match = re.search(r"(\d+) connections/s", done.stdout)
    if done.returncode or match is None:
        raise SetupError(f"{command[0]}: exit code {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
    return float(match[1])


def per_s(records: Sequence[Record], series: Series | None) -> Mean:
    """Return the mean connections per second of a series, or of the engine alone."""
    name = series.name if series else None
    return mean_of([record.result["per_s"] for record in records if record.parameters.get("series") == name])


def _cpu_us(records: Sequence[Record], series: Series, *who: str) -> Mean:
    runs = [record.result["cpu_us"] for record in records if record.parameters.get("series") == series.name]
    return mean_of([sum(result[name] for name in who) for result in runs])


def _row(records: Sequence[Record], series: Series) -> list[str]:
    own = _cpu_us(records, series, series.process).text(0) if series.process else "-"
    return [series.title, per_s(records, series).text(0), own, _cpu_us(records, series, "switch").text(0)]


def _known(records: Sequence[Record]) -> list[Series]:
    return [series for series in ASKED if per_s(records, series).runs]


def report(records: Sequence[Record]) -> Report:
    """Compare the engine's rate with its goal, and report a table with one row for each series."""
    engine = per_s(records, None)
    goals = [
        Goal(
            "one core's agent engine: at least 100,000 connections/s",
            engine.value >= LEAST_PER_S if engine.runs else None,
            f"{engine.text(0)} connections/s" if engine.runs else "not measured",
        )
    ]
    heading = ["16 at a time", "connections/s", "CPU of agent or proxy (us)", "of the switch (us)"]
    rows = [
        ["the agent's engine alone", engine.text(0), "-", "-"],
        *(_row(records, series) for series in _known(records)),
    ]
    summary = {record.key: {**record.parameters, **record.result} for record in records}
    return Report([Table(heading, rows)], goals, summary)


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the rates in the lab as bars."""
    axes = figure.subplots()
    known = _known(records)
    means = [per_s(records, series) for series in known]
    axes.bar([series.title for series in known], [mean.value for mean in means], yerr=[mean.bar for mean in means])
    axes.tick_params("x", rotation=30)
    axes.set_ylabel("connections/s in the lab, a 1 KB page each")
    axes.grid(axis="y", alpha=0.3)


EXPERIMENT = Experiment(
    name="content-agent",
    title="Content switching: connections a second",
    source="Chow, Wang & Prakash, section 6",
    about="The engine of an agent on one core, without sockets. In the lab 16 clients fetch 1 KB pages, a connection "
    "each, and share a core with the switch, agent or proxy.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
