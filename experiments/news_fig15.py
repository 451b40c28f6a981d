"""Fig. 15 of paper 003: NEWS under different detection intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments import simulated
from experiments.experiment import Experiment, Goal, Point, Record, Report, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIODS_S = (10.0, 15.0, 20.0, 30.0, 60.0, 90.0, 120.0)
QUICK_PERIODS_S = (15.0, 60.0, 120.0)
SEEDS = (1, 2, 3)
FALSE_ALARMS_S = (15.0, 30.0)
NO_FALSE_ALARM_ABOVE_S = 90.0
INCONSISTENT_BELOW_S = 30.0
BEST_S = 60.0
PAPER_ALARM_S = 20.0
"""What section 7.4 says of T, and 7.2 of the alarm at the best one."""
LOSS_UNDER_NEWS = 0.02
"""Table I."""
SIMILAR = 0.1
"""Rates that differ by less than this part are called similar."""


def points(quick: bool) -> Sequence[Point]:
    """Every interval."""
    return [
        simulated.point(f"T {period:g}", "news", quick=quick, seed=seed, period_s=period)
        for seed in (SEEDS[:1] if quick else SEEDS)
        for period in (QUICK_PERIODS_S if quick else PERIODS_S)
    ]


def _period(record: Record) -> float:
    return record.parameters["period_s"]


def _alarms(records: Sequence[Record]) -> float:
    return sum(one.result["crowd"]["false_alarms"] for one in records) / len(records)


def _compared(period_s: float, runs: Sequence[Record], best_kbps: float) -> str:
    """Say of one T in what it agrees with the paper and in what not: false alarms, delay, rates, losses."""
    false = _alarms(runs)
    ar, loss, admitted, used = (
        simulated.mean(runs, name) for name in ("ar_kbps", "response_loss", "admitted_per_s", "bottleneck_used")
    )
    near = ar >= (1 - SIMILAR) * best_kbps
    rates = f"{ar:.0f} kbit/s {'near' if near else 'against'} the best T's {best_kbps:.0f}"
    claims: list[tuple[bool, str]] = []
    if period_s in FALSE_ALARMS_S:
        claims.append((false > 0, f"{false:.1f} false alarms a run (paper: some)"))
    elif period_s > NO_FALSE_ALARM_ABOVE_S:
        claims.append((false == 0, f"{false:.1f} false alarms a run (paper: none)"))
        late = f"alarm after {simulated.detection(runs)} s (paper: late)"
        claims.append((min(simulated.detections_s(runs)) > PAPER_ALARM_S, late))
    if period_s == BEST_S:
        claims.append((near, f"{rates} (paper: the best)"))
    elif period_s < INCONSISTENT_BELOW_S:
        claims.append((not near, f"{rates} (paper: inconsistent)"))
    protects = loss <= LOSS_UNDER_NEWS
    why = "" if protects else f"; {admitted:.0f} requests/s are admitted and the link is {used:.0%} full"
    claims.append((protects, f"loss of {loss:.1%} (Table I: {LOSS_UNDER_NEWS:.0%}{why})"))
    said = [
        f"{verdict} in {', '.join(texts)}"
        for verdict, wanted in (("agrees", True), ("differs", False))
        if (texts := [text for holds, text in claims if holds is wanted])
    ]
    return f"T = {period_s:g} s {'; '.join(said)}."


def report(records: Sequence[Record]) -> Report:
    """Delay, false alarms, and what is reached, by interval."""
    rows = simulated.grouped(records, _period)
    long = [one for period, runs in rows.items() if period > NO_FALSE_ALARM_ABOVE_S for one in runs]
    short = [one for period, runs in rows.items() if period in FALSE_ALARMS_S for one in runs]
    best = max(simulated.mean(runs, "ar_kbps") for runs in rows.values())
    return Report(
        tables=[
            Table(
                ["T (s)", "alarm after (s)", "false alarms a run", "admitted/s", "AR (kbit/s)", "loss", "link used"],
                [
                    [
                        f"{period:g}",
                        simulated.detection(runs),
                        f"{_alarms(runs):.1f}",
                        simulated.text(runs, "admitted_per_s"),
                        simulated.text(runs, "ar_kbps"),
                        simulated.percent(runs, "response_loss", 1),
                        simulated.percent(runs, "bottleneck_used"),
                    ]
                    for period, runs in rows.items()
                ],
            )
        ],
        goals=[
            Goal(
                "no false alarm above 90 s",
                _alarms(long) == 0 if long else None,
                f"{_alarms(long):.1f} a run" if long else "-",
            ),
            Goal(
                "false alarms at 15 and 30 s, as in the paper",
                _alarms(short) > 0 if short else None,
                f"{_alarms(short):.1f} a run" if short else "-",
            ),
        ],
        text=[
            "The paper finds false alarms at 15 and 30 s, none above 90 s, inconsistent rates below 30 s, and its best "
            "results at 60 s. How many requests an interval holds, and how much AR scatters from one to the next, is "
            "what decides it; where in its interval the crowd sets in (1,000 s modulo T) decides how high the limit "
            "starts, and with it the differences between neighbouring T.",
            " ".join(
                ["Row by row, against the paper:", *(_compared(period, runs, best) for period, runs in rows.items())]
            ),
        ],
        summary={f"{period:g}": [one.result["crowd"] for one in runs] for period, runs in rows.items()},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """AR and admitted rate against time, by interval."""
    upper, lower = simulated.above_and_below(figure, "admitted requests/s", "AR, kbit/s")
    for period, runs in simulated.grouped(records, _period).items():
        upper.plot(*simulated.column(runs[0], simulated.ADMITTED), label=f"T = {period:g} s", lw=0.8)
        lower.plot(*simulated.column(runs[0], simulated.AR, 1e-3), lw=0.8)
    upper.legend(fontsize="x-small", ncols=2)


EXPERIMENT = Experiment(
    name="news-fig15",
    title="The detection interval, simulated",
    source="Paper 003, Fig. 15",
    about="The simulation of Table I with NEWS as published and T from 10 to 120 s.",
    points=points,
    compute=simulated.measure,
    report=report,
    draw=draw,
)
