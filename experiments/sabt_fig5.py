"""Flows with unequal losses that share one send-buffer budget: the smallest sufficient budget of each sharing
method."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import erf, erfinv

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table
from experiments.intervals import Mean, mean_of
from experiments.records import grouped, matching
from experiments.sabt_sharing import ABT, EQ, PAPER, PLAIN, SABT, SHARINGS, STEADY
from topo.labs.sharing import SETTLE_S, STARTING_S, SharingLab, Way

EACH = 4
"""Number of connections with each loss rate."""
LOSSES = (0.005, 0.01, 0.02)
WAYS = tuple(Way(f"10.10{n}.0.1", 0.02, EACH, 200, 1000, loss) for n, loss in enumerate(LOSSES, 1))
FIXED = "fixed"
CURVES = (EQ, ABT, SABT)
"""Sharing methods whose smallest sufficient budgets are determined."""
BUDGETS = (160, 220, 280, 340, 400, 480, 560, 720)
QUICK_BUDGETS: Mapping[str, Sequence[int]] = {EQ: (480, 560), ABT: (560,), SABT: (480,)}
HALF = 280
"""Budget in KB for all connections together: about half of the smallest sufficient budget of the sharing method EQ."""
ROUNDS: Mapping[str, int] = {EQ: 5, ABT: 5, SABT: 5}
QUICK_ROUNDS: Mapping[str, int] = {EQ: 4, ABT: 2, SABT: 4}
"""Number of runs with the budget HALF by sharing method, in the full and in the quick form. A round has one run of each
method that has runs left, one after the other."""
FIXED_KB = (16, 64)
SECONDS, QUICK_SECONDS, QUICK_LONG = 60.0, 20.0, 40.0
"""Seconds of the runs. QUICK_LONG is for the quick form's run of plain Linux, with which the other runs are
compared."""
ENOUGH = 0.95
OF_EQ, OF_ABT, SUM_OF_ABT = 0.85, 1.05, 0.98


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: plain Linux, and the sharing methods with several budgets; in the full form also
    fixed shares.

    The methods of CURVES run with the budget HALF in rounds, so that the compared methods run at nearly the same time.
    """
    if quick:
        plans = [(PLAIN, 0, QUICK_LONG), *((how, HALF, QUICK_SECONDS) for how in (STEADY, PAPER))]
        plans += [(how, kb, QUICK_SECONDS) for how, budgets in QUICK_BUDGETS.items() for kb in budgets]
    else:
        plans = [(PLAIN, 0, SECONDS), *((FIXED, kb, SECONDS) for kb in FIXED_KB)]
        plans += [
            (how, kb, SECONDS)
            for how in SHARINGS
            for kb in BUDGETS
            if (how, kb) not in [(curve, HALF) for curve in CURVES]
        ]
    rounds, seconds = (QUICK_ROUNDS, QUICK_SECONDS) if quick else (ROUNDS, SECONDS)
    compared = [
        (how, HALF, seconds, number) for number in range(max(rounds.values())) for how in CURVES if number < rounds[how]
    ]
    return [
        Point(
            f"{how} {kb} KB of {seconds:g} s #{number}",
            {"how": how, "kb": kb, "seconds": seconds, "number": number},
            seconds + SETTLE_S + STARTING_S,
            "place",
        )
        for how, kb, seconds, number in [*((*plan, 0) for plan in plans), *compared]
    ]


def send(how: str, kb: int) -> Mapping[str, object] | None:
    """Return the `send` option of the service for a sharing method; None for plain Linux.

    `kb` is the budget of all connections in KB of 1,000 bytes; for FIXED, the share of each connection in KB of 1,024
    bytes.
    """
    if how == PLAIN:
        return None
    if how == FIXED:
        return {"budget": 1_000_000, "sharing": "fixed", "size": kb << 10}
    return {"budget": 1000 * kb, **SHARINGS[how]}


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab, and yield the function that measures a point."""
    del group, say
    with SharingLab(WAYS) as lab:
        yield lambda point: lab.share(
            send(point.parameters["how"], point.parameters["kb"]),
            [EACH] * len(WAYS),
            point.parameters["seconds"],
        )


# -- the report

Rates = Mapping[tuple[str, int], NDArray[np.float64]]
"""For each loss rate, the Mbit/s of its EACH connections together (mean over runs), by sharing method and budget in
KB."""


def _rates(records: Sequence[Record]) -> Rates:
    runs = grouped(records, lambda record: (record.parameters["how"], record.parameters["kb"]))
    return {
        key: np.array(
            [mean_of(rates).value for rates in zip(*(record.result["mbit_s"] for record in members), strict=True)]
        )
        for key, members in runs.items()
    }


def least_kb(curve: Sequence[tuple[int, float]], most: float) -> float:
    """Return the budget in KB at which the rate of some connections reaches the share ENOUGH of the rate ``most``.

    ``curve`` has pairs of budget in KB and rate. The result is NaN if ``curve`` is empty or ``most`` is not above 0.
    The rate of a TCP sawtooth with a bounded window follows erf(budget / scale) to a few percent; fitting the scale by
    least squares removes the noise of single runs.
    """
    if not curve or not most > 0:
        return math.nan
    budgets, rates = np.array([kb for kb, _ in curve], float), np.array([rate for _, rate in curve]) / most

    def off(scale: float) -> float:
        return float(((erf(budgets / scale) - rates) ** 2).sum())

    scales = np.geomspace(budgets.min() / 20, 20 * budgets.max(), 400)
    near = int(np.argmin([off(scale) for scale in scales]))
    bounds = (scales[max(0, near - 1)], scales[min(len(scales) - 1, near + 1)])
    return float(minimize_scalar(off, bounds=bounds, method="bounded").x * erfinv(ENOUGH))


def _leasts(rates: Rates, how: str) -> list[float]:
    """Return the smallest sufficient budget in KB for each loss rate, then the budget for all connections together."""
    most = rates[PLAIN, 0]
    curve = {kb: seen for (who, kb), seen in sorted(rates.items()) if who == how}
    each = [
        least_kb([(kb, float(seen[at])) for kb, seen in curve.items()], float(rate)) for at, rate in enumerate(most)
    ]
    return [*each, least_kb([(kb, float(seen.sum())) for kb, seen in curve.items()], float(most.sum()))]


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each sharing method and budget, the smallest sufficient budgets, and the goals."""
    rates = _rates(records)
    rows = [
        [how, str(kb or "-"), *(f"{rate:.1f}" for rate in seen), mean_of(_sums(records, how, kb)).text()]
        for (how, kb), seen in rates.items()
    ]
    losses = tuple(f"{loss:.1%}" for loss in LOSSES)
    tables = [Table(("sharing", "KB", *losses, "Mbit/s"), rows)]
    if (PLAIN, 0) not in rates or not all((how, HALF) in rates for how in CURVES):
        return Report(tables)
    leasts = {how: _leasts(rates, how) for how in CURVES}
    least = {how: max(each) for how, (*each, _) in leasts.items()}
    shown = [[how, *(f"{kb:.0f}" for kb in (*each[:-1], least[how], each[-1]))] for how, each in leasts.items()]
    tables.append(Table(("least KB at 95 % of plain Linux", *losses, "all three", "their sum"), shown))
    of_sum = leasts[SABT][-1] / leasts[EQ][-1]
    totals = {how: _held(records, how) for how in (ABT, EQ)}
    return Report(tables, _goals(rates, least, of_sum, totals), {"least_kb": leasts})


def _sums(records: Sequence[Record], how: str, kb: int) -> list[float]:
    """Return the Mbit/s of all connections together, for each run."""
    return [sum(record.result["mbit_s"]) for record in matching(records, how=how, kb=kb)]


def _held(records: Sequence[Record], how: str) -> Mean:
    """Return the mean ratio of the total rate under SABT to the total rate under the sharing method `how` in the same
    round, both with the budget HALF."""
    pairs = zip(_sums(records, SABT, HALF), _sums(records, how, HALF), strict=False)
    return mean_of([sabt / other for sabt, other in pairs])


def _goals(rates: Rates, least: Mapping[str, float], of_sum: float, totals: Mapping[str, Mean]) -> Sequence[Goal]:
    of_eq, of_abt = least[SABT] / least[EQ], least[SABT] / least[ABT]
    sums = {how: float(seen.sum()) for (how, kb), seen in rates.items() if kb == HALF}
    goals = [
        Goal(
            "least KB at which all three reach 95 %: SABT at most 0.85 of EQ (paper 0.71)",
            of_eq <= OF_EQ,
            f"{of_eq:.2f}; {', '.join(f'{how} {kb:.0f}' for how, kb in least.items())}; for their sum {of_sum:.2f}",
        ),
        Goal("at most 1.05 of ABT", of_abt <= OF_ABT, f"{of_abt:.2f} (paper 0.85)"),
        Goal(
            "sum at half of EQ's least, needs of headroom 1: SABT at least 0.98 of ABT, above EQ",
            totals[ABT].value >= SUM_OF_ABT and totals[EQ].value > 1,
            f"{totals[ABT].text(2)} of ABT, {totals[EQ].text(2)} of EQ in the same round at {HALF} KB"
            f" (half is {least[EQ] / 2:.0f})",
        ),
    ]
    if PAPER in sums:
        seen = f"{sums[PAPER] / sums[EQ]:.2f} of EQ"
        goals.append(Goal("the same by equation 1 as it stands, what is left free", sums[PAPER] > sums[EQ], seen))
    if STEADY in sums:
        goals.append(Goal("what ABT's swing costs there", None, f"{1 - sums[ABT] / sums[STEADY]:.1%} of the sum"))
    best = max(float(seen.sum()) for (how, _), seen in rates.items() if how == SABT) / float(rates[PLAIN, 0].sum())
    goals.append(Goal("SABT's most at least 0.95 of plain Linux", best >= ENOUGH, f"{best:.2f}"))
    return goals


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the total rate of all connections against the budget."""
    axes = figure.subplots()
    rates = _rates(records)
    for how in SHARINGS:
        curve = sorted((kb, float(seen.sum())) for (who, kb), seen in rates.items() if who == how)
        axes.plot([kb for kb, _ in curve], [rate for _, rate in curve], "o-", label=how)
    if (PLAIN, 0) in rates:
        axes.axhline(float(rates[PLAIN, 0].sum()), linestyle="--", color="grey", label=PLAIN)
    axes.set(xlabel="budget (KB)", ylabel="Mbit/s of all flows", ylim=(0, None))
    axes.legend()
    axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="sabt-fig5",
    title="Flows of unlike losses that share a budget",
    source="Matsuo et al., Figure 5",
    about=(
        "Four Reno connections each lose 0.5, 1 and 2 % of their segments at 20 ms, and share a budget. SABT goes by"
        " their losses, ABT by twice what is in flight; least budgets are those of fitted curves."
    ),
    points=points,
    report=report,
    draw=draw,
    place=place,
    needs_root=True,
)
