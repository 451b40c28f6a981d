"""Flows of unlike losses that share one budget: how little is enough, by each way to share."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table
from experiments.intervals import mean_of
from experiments.sabtnet import Way
from experiments.sabtshared import SETTLE_S, STARTING_S, SharedPlace
from experiments.simulated import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EACH = 4
"""Connections of each loss."""
LOSSES = (0.005, 0.01, 0.02)
WAYS = tuple(Way(f"10.10{n}.0.1", 0.02, EACH, 200, 1000, loss) for n, loss in enumerate(LOSSES, 1))
PLAIN, EQ, ABT, SABT = "plain Linux", "EQ", "ABT", "SABT"
SHARING = {EQ: "equal", ABT: "abt", SABT: "sabt"}
BUDGETS = (100, 140, 200, 280, 400, 560, 720)
QUICK_BUDGETS = (140, 200, 280, 400, 560)
PAPER_BUDGETS, QUICK_PAPER_BUDGETS = (100, 120, 140, 160, 180), (140,)
"""With headroom 1. All in KB, for all connections."""
FIXED_KB = (16, 64)
SECONDS, QUICK_SECONDS = 60.0, 12.0
ENOUGH = 0.95
OF_EQ, OF_ABT, SUM_OF_ABT = 0.85, 1.05, 0.98
DOUBLE, SINGLE = "production", "paper"
"""Headroom 2 and 1."""


def points(quick: bool) -> Sequence[Point]:
    """Plain Linux, fixed shares, every budget with every way to share, and some with headroom 1."""
    seconds = QUICK_SECONDS if quick else SECONDS
    plans = [(PLAIN, 0, DOUBLE), *(("fixed", size, DOUBLE) for size in FIXED_KB)]
    plans += [(how, budget, DOUBLE) for budget in (QUICK_BUDGETS if quick else BUDGETS) for how in SHARING]
    plans += [(how, budget, SINGLE) for budget in (QUICK_PAPER_BUDGETS if quick else PAPER_BUDGETS) for how in SHARING]
    return [
        Point(
            f"{how} {size} KB {needs} {seconds:g} s",
            {"how": how, "kb": size, "needs": needs, "seconds": seconds},
            seconds + SETTLE_S + STARTING_S,
            "place",
        )
        for how, size, needs in plans
    ]


def send(how: str, kb: int, needs: str) -> Mapping[str, object] | None:
    """What the service shares."""
    if how == PLAIN:
        return None
    if how == "fixed":
        return {"budget": 1_000_000, "sharing": "fixed", "size": kb << 10}
    return {"budget": 1000 * kb, "sharing": SHARING[how], "needs": needs}


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the place."""
    del group, say
    with SharedPlace(WAYS) as one:
        yield lambda point: one.share(
            send(*(point.parameters[name] for name in ("how", "kb", "needs"))),
            [EACH] * len(WAYS),
            point.parameters["seconds"],
        )


# -- the report

Sums = Mapping[tuple[str, int, str], float]
"""Mbit/s of all together, by way to share, budget in KB and headroom."""


def _sums(records: Sequence[Record]) -> Sums:
    runs = grouped(records, lambda one: tuple(one.parameters[name] for name in ("how", "kb", "needs")))
    return {key: mean_of([sum(one.result["mbit_s"]) for one in members]).value for key, members in runs.items()}


def _curve(sums: Sums, how: str) -> list[tuple[int, float]]:
    return sorted((kb, rate) for (who, kb, needs), rate in sums.items() if who == how and needs == DOUBLE)


def least_kb(curve: Sequence[tuple[int, float]], most: float) -> float:
    """The budget from which on a curve is near ``most``, between what was measured; NaN if it never is.

    What noise takes back is given: the curve is made to rise.
    """
    if not curve:
        return math.nan
    budgets, rates = np.array([kb for kb, _ in curve], float), np.maximum.accumulate([rate for _, rate in curve])
    wanted = ENOUGH * most
    if rates[-1] < wanted:
        return math.nan
    above = int(np.argmax(rates >= wanted))
    if above == 0:
        return float(budgets[0])
    low, high = rates[above - 1], rates[above]
    return float(budgets[above - 1] + (wanted - low) / (high - low) * (budgets[above] - budgets[above - 1]))


def report(records: Sequence[Record]) -> Report:
    """A row a run, and the goals."""
    sums = _sums(records)
    rows = [
        [
            one.parameters["how"],
            str(one.parameters["kb"] or "-"),
            "1" if one.parameters["needs"] == SINGLE else "2",
            *(f"{rate:.1f}" for rate in one.result["mbit_s"]),
            f"{sum(one.result['mbit_s']):.1f}",
        ]
        for one in records
    ]
    heading = ("sharing", "KB", "headroom", *(f"{loss:.1%}" for loss in LOSSES), "Mbit/s")
    most = {how: max((rate for _, rate in _curve(sums, how)), default=math.nan) for how in SHARING}
    least = {how: least_kb(_curve(sums, how), most[how]) for how in SHARING}
    goals = _goals(sums, least) if all(_curve(sums, how) for how in SHARING) else ()
    return Report([Table(heading, rows)], goals, {"least_kb": least, "most": most})


def _goals(sums: Sums, least: Mapping[str, float]) -> Sequence[Goal]:
    of_eq, of_abt = least[SABT] / least[EQ], least[SABT] / least[ABT]
    goals = [
        Goal(
            "least KB at 95 % of each one's most: SABT at most 0.85 of EQ (paper 0.71)",
            of_eq <= OF_EQ,
            f"{of_eq:.2f}; {', '.join(f'{how} {kb:.0f}' for how, kb in least.items())}",
        ),
        Goal("at most 1.05 of ABT", of_abt <= OF_ABT, f"{of_abt:.2f} (paper 0.85)"),
    ]
    budgets = sorted({kb for _, kb, needs in sums if needs == SINGLE})
    if budgets:
        near = min(budgets, key=lambda kb: abs(kb - least[EQ] / 2))
        sabt, abt, eq = (sums[how, near, SINGLE] for how in (SABT, ABT, EQ))
        seen = f"{sabt / abt:.2f} of ABT, {sabt / eq:.2f} of EQ at {near} KB (half is {least[EQ] / 2:.0f})"
        text = "sum at half of EQ's least, headroom 1: SABT at least 0.98 of ABT, above EQ"
        goals.append(Goal(text, sabt >= SUM_OF_ABT * abt and sabt > eq, seen))
    if (PLAIN, 0, DOUBLE) in sums:
        best = max(rate for _, rate in _curve(sums, SABT))
        plain = sums[PLAIN, 0, DOUBLE]
        goals.append(Goal("SABT's most at least 0.95 of plain Linux", best >= ENOUGH * plain, f"{best / plain:.2f}"))
    return goals


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the sum over the budget."""
    axes = figure.subplots()
    sums = _sums(records)
    for how in SHARING:
        curve = _curve(sums, how)
        axes.plot([kb for kb, _ in curve], [rate for _, rate in curve], "o-", label=how)
    if (PLAIN, 0, DOUBLE) in sums:
        axes.axhline(sums[PLAIN, 0, DOUBLE], linestyle="--", color="grey", label=PLAIN)
    axes.set(xlabel="budget (KB)", ylabel="Mbit/s of all flows", ylim=(0, None))
    axes.legend()
    axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="sabt-fig5",
    title="Flows of unlike losses that share a budget",
    source="Matsuo et al., Figure 5",
    about=(
        "Four Reno connections each lose 0.5, 1 and 2 % of their segments at 20 ms, and share a budget. EQ, ABT"
        " and SABT go by the same measured needs, so ABT's own oscillation is not in it."
    ),
    points=points,
    report=report,
    draw=draw,
    place=place,
    needs_root=True,
)
