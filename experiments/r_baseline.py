"""Test of a reason why sluice's equal split loses more SYNs than kernel DNAT: the cost that a user-space hop has for a
loaded server."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, by_chance, difference, mean_of, surely_above
from experiments.records import by_number, matching
from experiments.turns import turns_of
from experiments.variants import BEHIND_HOP, EQUAL, IPTABLES, Variant
from experiments.webpool import pool
from topo.labs.web import Lab
from topo.plan.load import Load
from topo.plan.network import SERVER_NAMES, THREE

IDLE, LOADED = SERVER_NAMES[0], SERVER_NAMES[-1]
COMPARED: Sequence[Variant] = (IPTABLES, BEHIND_HOP, EQUAL)
RATE_PER_S, LOAD_S, QUICK_LOAD_S, GIVEN_UP_S = 160.0, 40.0, 15.0, 5.0
REPETITIONS = 5
OPENED, OVERFLOWS = "TcpPassiveOpens", "TcpExtListenOverflows"
"""Kernel counters of a network namespace: completed handshakes, and SYNs and ACKs dropped because of a full accept
queue."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure. Each repetition has one run of every variant, so that a slow change of the
    machine's speed affects all variants alike."""
    seconds = QUICK_LOAD_S if quick else LOAD_S
    shorter: Values = {"seconds": seconds} if quick else {}
    return [
        Point(
            f"{variant.name}{' quick' if quick else ''} #{number}",
            {"variant": variant.name, "seed": number, **shorter},
            seconds + 14,
            group=f"{variant.name} {number}",
        )
        for number in range(1, 1 + (1 if quick else REPETITIONS))
        for variant in COMPARED
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a new lab with one loaded server, and yield the measuring function."""
    (variant,) = [variant for variant in COMPARED if variant.name == group.split(maxsplit=1)[0]]
    with pool(variant.open(say, THREE)) as web:
        web.lab.break_server(LOADED)

        def measure(point: Point) -> Values:
            names = (IDLE, LOADED)
            before = {name: turns_of(web.lab.server_pid(name)) for name in names}
            counted = {name: _counters(web.lab, name) for name in names}
            result = web.measure(Load(RATE_PER_S, point.parameters.get("seconds", LOAD_S), GIVEN_UP_S))
            servers: dict[str, Any] = {}
            for name in names:
                turns = turns_of(web.lab.server_pid(name)).since(before[name])
                after = _counters(web.lab, name)
                opened = after[OPENED] - counted[name][OPENED]
                servers[name] = {
                    "opened": opened,
                    "overflows": after[OVERFLOWS] - counted[name][OVERFLOWS],
                    "turns": turns.turns / opened,
                    "sleeps": turns.sleeps / opened,
                    "waited_ms": 1000 * turns.waited_s / opened,
                }
            return {"connect": result["connect"], "transfer": result["transfer"], "servers": servers}

        yield measure


def _counters(lab: Lab, name: str) -> Mapping[str, int]:
    text = lab.call(name, "nstat", "--json", "-a", "-s", "-z", OPENED, OVERFLOWS)
    return json.loads(text)["kernel"]


def _values(records: Sequence[Record], variant: Variant, *path: str) -> dict[int, float]:
    return by_number(matching(records, variant=variant.name), *path)


def _mean(records: Sequence[Record], variant: Variant, *path: str) -> Mean:
    return mean_of(list(_values(records, variant, *path).values()))


FIGURES: Mapping[str, tuple[tuple[str, ...], int]] = {
    "connect, mean (ms)": (("connect", "mean_ms"), 0),
    "given up": (("connect", "given_up"), 0),
    "transfer, mean (ms)": (("transfer", "mean_ms"), 0),
    "idle server: sleeps a connection": (("servers", IDLE, "sleeps"), 2),
    "loaded server: connections served": (("servers", LOADED, "opened"), 0),
    "turns a connection": (("servers", LOADED, "turns"), 2),
    "waited for its turns (ms)": (("servers", LOADED, "waited_ms"), 0),
}


def report(records: Sequence[Record]) -> Report:
    """Report a table of the variants, and whether the user-space hop explains the additional losses."""
    known = [variant for variant in COMPARED if _values(records, variant, "connect", "mean_ms")]
    rows = [
        [variant.title, *(_mean(records, variant, *path).text(digits) for path, digits in FIGURES.values())]
        for variant in known
    ]
    goals: list[Goal] = []
    if len(known) == len(COMPARED):
        plain, hop, ours = (_mean(records, variant, "connect", "mean_ms") for variant in COMPARED)
        goals.append(
            Goal(
                "behind a hop in user space kernel DNAT and sluice's equal split are level in connect time",
                by_chance(hop, ours),
                f"{hop.text(0)} against {ours.text(0)} ms; without the hop {plain.text(0)} ms",
            )
        )
        for variant in (BEHIND_HOP, EQUAL):
            more = difference(*(_values(records, each, "servers", IDLE, "sleeps") for each in (variant, IPTABLES)))
            goals.append(
                Goal(
                    "a server's workers sleep more often for a connection than with kernel DNAT alone: "
                    f"{variant.title}",
                    surely_above(more),
                    f"{more.signed(2)} sleeps",
                )
            )
    return Report(
        tables=[Table(["way", *FIGURES], rows)],
        goals=goals,
        summary={
            variant.name: {
                what: [mean.value, mean.half]
                for what, (path, _) in FIGURES.items()
                for mean in [_mean(records, variant, *path)]
            }
            for variant in known
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the mean connect time, and how often an idle server's workers sleep per connection, a dot for every run."""
    left, right = figure.subplots(1, 2)
    for place, variant in enumerate(COMPARED):
        for axes, path in ((left, ("connect", "mean_ms")), (right, ("servers", IDLE, "sleeps"))):
            values = list(_values(records, variant, *path).values())
            axes.plot([place] * len(values), values, "o", color=f"C{place}")
    for axes, label in ((left, "connect, mean (ms)"), (right, "sleeps a connection, idle server")):
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(len(COMPARED)), ["kernel DNAT", "behind a hop", "sluice"], fontsize="small")


EXPERIMENT = Experiment(
    name="r-baseline",
    title="Why an equal split loses more behind sluice than by kernel DNAT",
    source="Beyond Ohta & Andou",
    about="The lab at 160/s, an equal split by three ways. Kernel DNAT delivers what a worker sends, and its "
    "acknowledgement, within the worker's system call; a process in user space does not.",
    points=points,
    report=report,
    draw=draw,
    place=place,
    needs_root=True,
)
