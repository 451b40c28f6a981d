"""Number of connections whose packets reach two servers, of a million connections: counted by an observer outside of
the switch, and by the switch itself."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sluice.names import CONNECTION_SLOTS

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from topo.labs.connections.lab import ConnectionsLab
from topo.labs.connections.programme import PRESSED, Plan, Programme, bounded, exact
from topo.labs.connections.tuples import drawn
from topo.plan.network import VIP, WEB_PORT

SEED = 1
UNPINNED = 0.012
"""Largest share of unpinned connections (without an entry in the switch's table) while a quarter of the table is used
(p4src/common/sizes.p4)."""
WHOLE, QUICK = (1, Plan(11, 60_000, 274_000)), (4, Plan(2, 15_000, 67_000))
"""The plans of the full form (a million connections) and of the quick form (100,000). The number N before a plan means
that the plan's connections use only 1/N of the table."""
Phase = Mapping[str, Any]


def points(quick: bool) -> Sequence[Point]:
    """Return a single point to measure: the counted events are rare, so one run with many connections is made instead
    of repetitions."""
    corner, plan = QUICK if quick else WHOLE
    return [
        Point(
            key=f"{plan.waves} x {plan.live}, then {plan.pressure}",
            parameters={"corner": corner, "waves": plan.waves, "live": plan.live, "pressure": plan.pressure},
            seconds=60 if quick else 1500,
            group="many",
        )
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Yield the measuring function. It opens a new lab for each point, because a lab is built for the address tuples of
    all its connections, which depend on the point."""
    del group

    def measure(point: Point) -> Values:
        parameters = point.parameters
        plan = Plan(parameters["waves"], parameters["live"], parameters["pressure"])
        tuples = drawn(plan.tuples, str(VIP), WEB_PORT, slots=CONNECTION_SLOTS, corner=parameters["corner"], seed=SEED)
        with ConnectionsLab(tuples) as lab:
            return Programme(lab, plan, say).run().values()

    yield measure


def _summed(name: str, phases: Sequence[Phase]) -> dict[str, Any]:
    sums = {key: sum(phase[key] for phase in phases) for key, value in phases[0].items() if isinstance(value, int)}
    switch = {key: sum(phase["switch"][key] for phase in phases) for key in phases[0]["switch"]}
    return {**sums, "name": name, "switch": switch}


def rows(result: Values) -> list[dict[str, Any]]:
    """Return the counts summed over all waves of connections, and then the counts of the last phase, in which more
    connections are opened than the table has room for."""
    waves = [phase for phase in result["phases"] if phase["name"] != PRESSED]
    pressed = [phase for phase in result["phases"] if phase["name"] == PRESSED]
    return [_summed(f"{len(waves)} waves", waves), *pressed]


COMPARED = {
    "SYNs without a slot": ("unpinned_syns", "unpinned_new"),
    "moved by a SYN": ("moved", "moved"),
    "disowned": ("resets", "disowned"),
}
"""Names of the compared counts: the observer's or the clients' count, and the switch's count of the same events."""


def _row(phase: Mapping[str, Any]) -> list[str]:
    both = [f"{phase[seen]:,} / {phase['switch'][counted]:,}" for seen, counted in COMPARED.values()]
    unpinned = f"{phase['unpinned']:,} ({phase['unpinned'] / phase['connections']:.2%})"
    return [
        phase["name"],
        f"{phase['connections']:,}",
        unpinned,
        *both,
        f"{phase['strayed']:,}",
        f"{phase['strayed_pinned']:,}",
    ]


def report(records: Sequence[Record]) -> Report:
    """Report the counts of the last run."""
    result = records[-1].result
    summed = rows(result)
    heading = [
        "connections",
        "number",
        "without a slot",
        *(f"{text}: seen / counted" for text in COMPARED),
        "reached two servers, but for a SYN",
        "of those, with a slot",
    ]
    share = summed[0]["unpinned"] / summed[0]["connections"]
    strayed, broken = (sum(wave[name] for wave in summed) for name in ("strayed_pinned", "broken_pinned"))
    counted = " and ".join(f"{sum(wave['switch'][name] for wave in summed):,}" for name in ("unpinned_new", "disowned"))
    moved = f"{sum(wave['switch']['moved'] for wave in summed):,}, seen {sum(wave['moved'] for wave in summed):,}"
    pinned = sum(wave["connections"] - wave["unpinned"] for wave in summed)
    what = ("weight_changes", "drains", "reloads", "ejections", "again", "lost")
    happened = Table(
        ["weight changes", "drains", "reloads", "ejections", "segments sent again", "frames that nobody saw"],
        [[f"{result[name]:,}" for name in what]],
    )
    goals = [
        Goal("connections with a slot that reach two servers: 0", strayed == 0, f"{strayed} of {pinned:,}"),
        Goal("connections with a slot that break: 0", broken == 0, f"{broken} of {pinned:,}"),
        Goal(f"in waves at most {UNPINNED:.1%} are without a slot", share <= UNPINNED, f"{share:.2%}"),
        Goal("the switch counts as many SYNs without a slot, and resets", all(map(exact, result["phases"])), counted),
        Goal("and at least as many moves by a SYN", all(map(bounded, result["phases"])), moved),
    ]
    return Report([Table(heading, [_row(wave) for wave in summed]), happened], goals, {"phases": result["phases"]})


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the observer's and the switch's counts side by side."""
    axes = figure.subplots()
    summed = rows(records[-1].result)
    names = [f"{wave['name']}:\n{text}" for wave in summed for text in COMPARED]
    for place_of, (label, at) in enumerate({"seen outside of it": 0, "by the switch": 1}.items()):
        values = [
            wave[pair[0]] if at == 0 else wave["switch"][pair[1]] for wave in summed for pair in COMPARED.values()
        ]
        axes.barh([number + 0.4 * place_of for number in range(len(names))], values, 0.4, label=label)
    axes.set_yticks([number + 0.2 for number in range(len(names))], names, fontsize="small")
    axes.invert_yaxis()
    axes.set_xscale("symlog")
    axes.set_xlabel("number")
    axes.legend()


EXPERIMENT = Experiment(
    name="nothing-broken",
    title="Nothing broken, of a million",
    source="Beyond Ohta & Andou",
    about="Frames of simulated clients and servers pass the embedded switch while servers drain, fall silent, are "
    "ejected and reloaded, and ports are used again. At last there are more connections than slots.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
