"""Shares of a send-buffer budget that equal flows receive over time, simulated: their variation and their fairness."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from sluice.resources import shares
from sluice.resources.direction import Budget, shared
from sluice.resources.need import Estimator, Needs
from sluice.resources.shares import Sharing
from sluice.resources.throughput import COUNTED, Column, segments_per_s

from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report, Table, Values
from experiments.intervals import mean_of
from experiments.records import grouped
from experiments.renoflows import MSS, Flow, reading

FLOWS, RTT_S, RTO_S = 4, 0.1, 0.5
ROUNDS = 10
"""Round trips in an interval of one second."""
LOSSES = (0.002, 0.005, 0.01)
BUDGETS = (0.75, 1.0, 1.5)
"""Budgets relative to the bytes that all flows need together according to the model (`needed`)."""
SECONDS, BEGIN_S = 600, 60
SEEDS, QUICK_SEEDS = tuple(range(1, 11)), (1, 2, 3)
SWING, FAIR = 1 / 3, 0.98
EQ, ABT, PAPER, SABT = "EQ", "ABT", "SABT, equation 1", "SABT"
HOW: Mapping[str, tuple[Sharing, Needs]] = {
    EQ: (shares.equal, Needs.PRODUCTION),
    ABT: (shares.abt, Needs.PRESENT),
    PAPER: (shares.sabt, Needs.PAPER),
    SABT: (shares.sabt, Needs.PRODUCTION),
}


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every loss rate, budget and sharing method."""
    return [
        Point(f"{how} {loss:g} {budget:g} #{seed}", {"how": how, "loss": loss, "part": budget, "seed": seed}, 0.8)
        for seed in (QUICK_SEEDS if quick else SEEDS)
        for loss in LOSSES
        for budget in BUDGETS
        for how in HOW
    ]


def needed(loss: float) -> float:
    """Return the bytes that a flow needs according to the TCP model: the mean bytes in flight of an unlimited
    window."""
    flow = [np.array([value]) for value in (loss, RTT_S, RTO_S, 1e9)]
    return float(segments_per_s(*flow, each=COUNTED)[0]) * RTT_S * MSS


def decider(how: str, budget: float, flows: Sequence[Flow]) -> Callable[[], Column]:
    """Return a function that is called at the end of each interval, and computes each flow's share of the budget in
    bytes, as the controller does."""
    sharing, needs = HOW[how]
    estimator, turns = Estimator(len(flows)), iter([True])
    server = np.zeros(len(flows), np.int64)

    def decide() -> Column:
        estimator.observe(reading([flow.interval() for flow in flows], RTT_S, RTO_S, is_first=next(turns, False)))
        budgets = {0: (Budget(budget, sharing, needs=needs), 0)}
        return shared(
            budgets, np.array([budget]), server, estimator.needs(needs, server), np.full(len(flows), float(MSS))
        )

    return decide


def measure(point: Point) -> Values:
    """Simulate a point. In the result, shares are relative to an equal share, and the first BEGIN_S seconds are left
    out."""
    loss, seed = point.parameters["loss"], point.parameters["seed"]
    budget = point.parameters["part"] * FLOWS * needed(loss)
    flows = [Flow(loss, round(RTO_S / RTT_S), 1000 * seed + number) for number in range(FLOWS)]
    decide = decider(point.parameters["how"], budget, flows)
    caps = np.full(FLOWS, budget / FLOWS)
    rows: list[list[float]] = []
    got = np.zeros(FLOWS)
    for second in range(SECONDS):
        for _ in range(ROUNDS):
            arrived = np.array([flow.step(cap / MSS) for flow, cap in zip(flows, caps, strict=True)])
            got += arrived if second >= BEGIN_S else 0
        caps = decide()
        rows.append((caps * FLOWS / budget).tolist())
    late = np.array(rows[BEGIN_S:])
    return {
        "swing": float(late.std(axis=0).mean()),
        "fair": jain(got),
        "fair_shares": statistics.fmean(map(jain, late)),
        "mbit_s": float(got.sum()) * MSS * 8e-6 / (SECONDS - BEGIN_S),
        "first": [round(row[0], 3) for row in rows[BEGIN_S : BEGIN_S + 120]],
    }


def jain(values: Column) -> float:
    """Return Jain's fairness index: 1 if all values are equal."""
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))


# -- the report

Place = tuple[float, float]
"""Loss rate, and the budget relative to the needs of all flows."""


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each combination of loss rate, budget and sharing method."""
    runs = grouped(
        records, lambda record: (record.parameters["loss"], record.parameters["part"], record.parameters["how"])
    )

    def seen(place: Place, how: str, name: str) -> float:
        return mean_of([record.result[name] for record in runs[*place, how]]).value

    rows = [
        [
            f"{loss:.1%}",
            f"{budget:g}",
            how,
            *(f"{seen((loss, budget), how, name):.3f}" for name in ("swing", "fair", "fair_shares")),
            f"{seen((loss, budget), how, 'mbit_s'):.2f}",
        ]
        for loss, budget, how in runs
    ]
    places = [
        (loss, budget) for loss in LOSSES for budget in BUDGETS if all((loss, budget, how) in runs for how in HOW)
    ]
    ratios = {
        how: [(place, seen(place, how, "swing") / seen(place, ABT, "swing")) for place in places]
        for how in (SABT, PAPER)
    }
    fairness = [(place, min(record.result["fair"] for record in runs[*place, SABT])) for place in places]
    goals = [
        *(_goal(f"{how}'s deviation at most a third of ABT's", ratio, _swings_less) for how, ratio in ratios.items()),
        _goal("Jain's index of what SABT's flows get at least 0.98", fairness, lambda value: value >= FAIR),
    ]
    heading = ("loss", "budget/needs", "sharing", "share's deviation", "Jain, bytes", "Jain, shares", "Mbit/s")
    return Report([Table(heading, rows)], goals if places else (), {"swing": ratios, "fair": fairness})


def _swings_less(ratio: float) -> bool:
    return ratio <= SWING


def _goal(text: str, seen: Sequence[tuple[Place, float]], holds: Callable[[float], bool]) -> Goal:
    good = sum(holds(value) for _, value in seen)
    values = [value for _, value in seen]
    return Goal(text, good == len(seen), f"{min(values):.2f} to {max(values):.2f}; {good} of {len(seen)} hold")


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the first flow's share of the budget over time for each sharing method, in one representative case."""
    axes = figure.subplots()
    for record in records:
        seed, loss, budget, how = (record.parameters[name] for name in ("seed", "loss", "part", "how"))
        if (seed, loss, budget) == (QUICK_SEEDS[0], LOSSES[1], BUDGETS[1]):
            axes.plot(range(BEGIN_S, BEGIN_S + len(record.result["first"])), record.result["first"], label=how)
    axes.set(xlabel="s", ylabel="a flow's share, in parts of an equal one", ylim=(0, None))
    if axes.lines:
        axes.legend()
    axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="sabt-shares",
    title="Shares of equal flows over time, simulated",
    source="Matsuo et al., Figures 2 and 3",
    about=(
        "Four Reno flows of 100 ms with the same loss share 0.75 to 1.5 of their needs. ABT goes by twice what is in"
        " flight, SABT by a hundred losses, held against the others'; equation 1 by ten intervals."
    ),
    points=points,
    report=report,
    draw=draw,
    compute=measure,
)
