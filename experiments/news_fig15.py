"""Fig. 15 of Chen & Heidemann: NEWS under different detection intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiments import simulated
from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report
from experiments.records import Columns, grouped, table

PERIODS_S = (10.0, 15.0, 20.0, 30.0, 60.0, 90.0, 120.0)
QUICK_PERIODS_S = (15.0, 60.0, 120.0)
PRODUCTION_PERIODS_S = (15.0, 120.0)
"""Values of T (detection interval) in seconds for production mode in the full form; two values suffice, because
decisions of production mode do not depend on T."""
SEEDS = (1, 2, 3)
FALSE_ALARMS_S = (15.0, 30.0)
NO_FALSE_ALARM_ABOVE_S = 90.0
BEST_S = 60.0
"""The best detection interval T in seconds by Chen & Heidemann, section 7.4."""
SIMILAR = 0.1
"""Largest share by which AR at BEST_S may be below the best AR of all T and still count as near it."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: NEWS as published with every interval, and in the full form production mode with
    two intervals."""
    seeds = SEEDS[:1] if quick else SEEDS
    made = [
        simulated.point(f"T {period:g}", "news", quick=quick, seed=seed, period_s=period)
        for seed in seeds
        for period in (QUICK_PERIODS_S if quick else PERIODS_S)
    ]
    made += [
        simulated.point(f"production, T {period:g}", "production", quick=quick, seed=seed, period_s=period)
        for seed in (() if quick else seeds)
        for period in PRODUCTION_PERIODS_S
    ]
    return made


Place = tuple[str, float]
"""Variant of NEWS, and detection interval T in seconds."""


def _place(record: Record) -> Place:
    return record.parameters["variant"], record.parameters["period_s"]


COLUMNS: Columns[Place] = {
    "T (s)": lambda place, _: f"{place[1]:g}" if place[0] == "news" else f"production mode, {place[1]:g}",
    **simulated.columns("alarm after (s)", "false alarms a run", "admitted/s", "AR before (kbit/s)", "AR (kbit/s)"),
    **simulated.columns("loss", "link used"),
}


def _alarms(records: Sequence[Record]) -> float:
    return simulated.mean(records, "false_alarms")


def _false_alarms(period_s: float, runs: Sequence[Record]) -> Goal:
    """Return the goal that the short interval `period_s` causes false alarms, as reported by Chen & Heidemann."""
    text = f"false alarms at {period_s:g} s, as in the paper"
    if not runs:
        return Goal(text, None, "-")
    which = sum(_alarms([record]) > 0 for record in runs)
    return Goal(text, which > 0, f"{_alarms(runs):.1f} a run, in {which} of {len(runs)}")


def _best(news: Mapping[float, Sequence[Record]]) -> Goal:
    """Return the goal that AR (the response rate of the fastest flows) at Chen & Heidemann's best T is near the best AR
    of all T."""
    text = f"AR at {BEST_S:g} s, the paper's best T, within {SIMILAR:.0%} of the best"
    if BEST_S not in news:
        return Goal(text, None, "-")
    ar = {period_s: simulated.mean(runs, "ar_kbps") for period_s, runs in news.items()}
    best = max(ar, key=lambda period_s: ar[period_s])
    return Goal(text, ar[BEST_S] >= (1 - SIMILAR) * ar[best], f"{ar[BEST_S]:.0f} against {ar[best]:.0f} at {best:g} s")


def report(records: Sequence[Record]) -> Report:
    """Report detection delay, false alarms, and AR (the response rate of the fastest flows) by detection interval."""
    rows = grouped(records, _place)
    news = {period_s: runs for (variant, period_s), runs in rows.items() if variant == "news"}
    long = [record for period_s, runs in news.items() if period_s > NO_FALSE_ALARM_ABOVE_S for record in runs]
    return Report(
        tables=[table(COLUMNS, rows)],
        goals=[
            Goal(
                "no false alarm above 90 s",
                _alarms(long) == 0 if long else None,
                f"{_alarms(long):.1f} a run" if long else "-",
            ),
            *(_false_alarms(period_s, news.get(period_s, [])) for period_s in FALSE_ALARMS_S),
            _best(news),
        ],
        summary={
            f"{variant} {period:g}": [record.result["crowd"] for record in runs]
            for (variant, period), runs in rows.items()
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw AR and the rate of admitted requests against time: one run of each variant and detection interval."""
    upper, lower = simulated.above_and_below(figure, "admitted requests/s", "AR, kbit/s")
    for (variant, period), runs in grouped(records, _place).items():
        label = f"T = {period:g} s{'' if variant == 'news' else ', production'}"
        upper.plot(*simulated.column(runs[0], simulated.ADMITTED), label=label, lw=0.8)
        lower.plot(*simulated.column(runs[0], simulated.AR, 1e-3), lw=0.8)
    upper.legend(fontsize="x-small", ncols=2)


EXPERIMENT = Experiment(
    name="news-fig15",
    title="The detection interval, simulated",
    source="Chen & Heidemann, Fig. 15",
    about="The simulation of Table I with T from 10 to 120 s, in paper mode and in production mode. An alarm "
    "needs AR to fall and requests to rise by over 10 % in one interval.",
    points=points,
    compute=simulated.measure,
    report=report,
    draw=draw,
)
