"""Fig. 15 of paper 003: NEWS under different detection intervals."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from experiments import simulated
from experiments.experiment import Experiment, Goal, Point, Record, Report, Table
from experiments.intervals import chance, mean_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERIODS_S = (10.0, 15.0, 20.0, 30.0, 60.0, 90.0, 120.0)
QUICK_PERIODS_S = (15.0, 60.0, 120.0)
PRODUCTION_PERIODS_S = (15.0, 120.0)
"""Production mode decides as often whatever T is: it is run with a short and a long one."""
SEEDS = (1, 2, 3)
FALSE_ALARMS_S = (15.0, 30.0)
NO_FALSE_ALARM_ABOVE_S = 90.0
INCONSISTENT_BELOW_S = 30.0
BEST_S = 60.0
PAPER_ALARM_S = 20.0
"""What section 7.4 says of T, and 7.2 of the alarm at the best one."""
LOSS_UNDER_NEWS = 0.02
"""Table I."""
TOLERANCE = 0.1
"""delta of the detector: an alarm needs AR to fall and the requests to rise by more than this part at once."""
SIMILAR = 0.1
"""Rates that differ by less than this part are called similar; runs whose AR differs by more, inconsistent."""


def points(quick: bool) -> Sequence[Point]:
    """Every interval under NEWS as published; in the full form production mode with two of them."""
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
"""Variant and T."""
Rows = Mapping[Place, Sequence[Record]]


def _place(record: Record) -> Place:
    return record.parameters["variant"], record.parameters["period_s"]


def _alarms(records: Sequence[Record]) -> float:
    return sum(one.result["crowd"]["false_alarms"] for one in records) / len(records)


Claim = tuple[bool, str]
"""Whether it is as in the paper, and what was seen."""


def _rates(period_s: float, runs: Sequence[Record], best_kbps: float) -> list[Claim]:
    """Hold rates against what the paper says of them: best at one T, inconsistent below another."""
    if period_s == BEST_S:
        ar = simulated.mean(runs, "ar_kbps")
        near = ar >= (1 - SIMILAR) * best_kbps
        how = "near" if near else "against"
        return [(near, f"{ar:.0f} kbit/s {how} the best T's {best_kbps:.0f} (paper: the best)")]
    known = [value for one in runs if (value := one.result["crowd"]["ar_kbps"]) is not None]
    if period_s >= INCONSISTENT_BELOW_S or len(known) < 2:
        return []
    admitted = [one.result["crowd"]["admitted_per_s"] for one in runs]
    seen = (
        f"AR of {min(known):.0f} to {max(known):.0f} kbit/s from run to run, with {min(admitted):.0f} to "
        f"{max(admitted):.0f} requests/s admitted (paper: inconsistent)"
    )
    return [(min(known) < (1 - SIMILAR) * max(known), seen)]


def _losses(runs: Sequence[Record]) -> list[Claim]:
    """Hold the loss against the paper's."""
    if not runs:
        return []
    loss, admitted, used = (
        simulated.mean(runs, name) for name in ("response_loss", "admitted_per_s", "bottleneck_used")
    )
    protects = loss <= LOSS_UNDER_NEWS
    why = "" if protects else f"; {admitted:.0f} requests/s are admitted and the link is {used:.0%} full"
    return [(protects, f"loss of {loss:.1%} (Table I: {LOSS_UNDER_NEWS:.0%}{why})")]


def _compared(period_s: float, runs: Sequence[Record], best_kbps: float) -> str:
    """Say of one T in what it agrees with the paper and in what not: false alarms, delay, rates, losses.

    Where a false alarm had set the limit beforehand, a small loss is not that of a crowd that was detected.
    """
    false = _alarms(runs)
    claims: list[Claim] = []
    if period_s in FALSE_ALARMS_S:
        claims.append((false > 0, f"{false:.1f} false alarms a run (paper: some)"))
    elif period_s > NO_FALSE_ALARM_ABOVE_S:
        claims.append((false == 0, f"{false:.1f} false alarms a run (paper: none)"))
        claims.append((min(simulated.detections_s(runs)) > PAPER_ALARM_S, f"{simulated.alarm(runs)} (paper: late)"))
    unlimited = [one for one in runs if not simulated.limited_before(one)]
    claims += [*_rates(period_s, runs, best_kbps), *_losses(unlimited)]
    said = [
        f"{verdict} in {', '.join(texts)}"
        for verdict, wanted in (("agrees", True), ("differs", False))
        if (texts := [text for holds, text in claims if holds is wanted])
    ]
    if limited := len(runs) - len(unlimited):
        said.append(
            f"met the crowd in {limited} of {len(runs)} runs with a limit that an alarm before the onset had set: "
            "their loss is not held against the paper's"
        )
    return f"T = {period_s:g} s {'; '.join(said)}."


def _steps(runs: Sequence[Record]) -> list[tuple[float, float]]:
    """Return by what part AR and the offered requests changed from one interval to the next, before the crowd."""
    changes: list[tuple[float, float]] = []
    for one in runs:
        quiet = [row for row in one.result["rows"] if row[0] < one.result["onset_s"]]
        measured = [(row[simulated.AR], row[simulated.OFFERED]) for row in quiet if row[simulated.AR]]
        changes += [
            (after[0] / before[0] - 1, after[1] / before[1] - 1) for before, after in pairwise(measured) if before[1]
        ]
    return changes


def _no_false_alarms(rows: Rows) -> str:
    """Say why the short T have none where they have none: what an alarm needs, and how often each half of it came."""
    said: list[str] = []
    for (variant, period_s), runs in rows.items():
        if variant != "news" or period_s not in FALSE_ALARMS_S or _alarms(runs) > 0 or not (steps := _steps(runs)):
            continue
        slower = sum(ar < -TOLERANCE for ar, _ in steps)
        busier = sum(requests > TOLERANCE for _, requests in steps)
        both = sum(ar < -TOLERANCE and requests > TOLERANCE for ar, requests in steps)
        said.append(
            f"with T = {period_s:g} s AR fell by so much from one interval to the next in {slower} of {len(steps)}, "
            f"the requests rose by so much in {busier}, both at once in {both}"
        )
    if not said:
        return ""
    return (
        "Why there are no false alarms where the paper has some: an alarm needs AR to fall and the requests to rise by "
        f"more than {TOLERANCE:.0%} in the same interval. Before the crowd, {'; '.join(said)}. The requests here are a "
        "Poisson process of one rate, and answers do not hinder each other on a link that is not full, so that the two "
        "have nothing to do with one another; the requests of the paper's log were recorded, and need not be like that."
    )


def _longer(rows: Rows) -> str:
    """Say so where another T than the paper's best has the better AR, and at what price."""
    news = {period_s: runs for (variant, period_s), runs in rows.items() if variant == "news"}
    if BEST_S not in news:
        return ""
    ar = {period_s: simulated.mean(runs, "ar_kbps") for period_s, runs in news.items()}
    best = max(ar, key=lambda period_s: ar[period_s])
    if best == BEST_S:
        return ""

    def price(period_s: float) -> str:
        used = simulated.percent(news[period_s], "bottleneck_used")
        return f"{simulated.text(news[period_s], 'admitted_per_s')} requests/s admitted, {used} of the link used"

    means = [mean_of([one.result["crowd"]["ar_kbps"] for one in news[period_s]]) for period_s in (best, BEST_S)]
    return (
        f"T = {best:g} s has a higher AR than the paper's best, {BEST_S:g} s ({means[0].text()} against "
        f"{means[1].text()} kbit/s{chance(*means)}). AR is that of the fastest and alone says little: the one has "
        f"{price(best)}, the other {price(BEST_S)}."
    )


def _production(rows: Rows) -> str:
    """Say what T does to production mode: nothing is decided by it."""
    known = {period_s: runs for (variant, period_s), runs in rows.items() if variant == "production"}
    if not known:
        return ""
    intervals = {period_s: _decided_each_s(runs[0]) for period_s, runs in known.items()}
    said = "; ".join(
        f"T = {period_s:g} s: a decision each {intervals[period_s]:g} s, {simulated.alarm(runs)}, AR "
        f"{simulated.text(runs, 'ar_kbps')} kbit/s"
        for period_s, runs in known.items()
    )
    alike = "does not depend on T" if len(set(intervals.values())) == 1 else "depends on T"
    return (
        f"Production mode's interval {alike} ({said}). T only sets the window here that its figures are of, which "
        "begins one T after the alarm."
    )


def _decided_each_s(record: Record) -> float:
    moments = [row[0] for row in record.result["rows"]]
    return round(statistics.median(after - before for before, after in pairwise(moments)), 3)


def _row(place: Place, runs: Sequence[Record]) -> list[str]:
    variant, period_s = place
    return [
        f"{period_s:g}" if variant == "news" else f"production mode, {period_s:g}",
        simulated.detection(runs),
        f"{_alarms(runs):.1f}",
        simulated.text(runs, "admitted_per_s"),
        simulated.text(runs, "ar_kbps", window="quiet"),
        simulated.text(runs, "ar_kbps"),
        simulated.percent(runs, "response_loss", 1),
        simulated.percent(runs, "bottleneck_used"),
    ]


def _false_alarms(period_s: float, runs: Sequence[Record]) -> Goal:
    """Say whether a short T has them, as in the paper."""
    text = f"false alarms at {period_s:g} s, as in the paper"
    if not runs:
        return Goal(text, None, "-")
    which = sum(_alarms([one]) > 0 for one in runs)
    return Goal(text, which > 0, f"{_alarms(runs):.1f} a run, in {which} of {len(runs)}")


def report(records: Sequence[Record]) -> Report:
    """Delay, false alarms, and what is reached, by interval."""
    rows = simulated.grouped(records, _place)
    news = {period_s: runs for (variant, period_s), runs in rows.items() if variant == "news"}
    long = [one for period_s, runs in news.items() if period_s > NO_FALSE_ALARM_ABOVE_S for one in runs]
    best = max((simulated.mean(runs, "ar_kbps") for runs in news.values()), default=0.0)
    heading = [
        "T (s)",
        "alarm after (s)",
        "false alarms a run",
        "admitted/s",
        "AR before (kbit/s)",
        "AR (kbit/s)",
        "loss",
        "link used",
    ]
    return Report(
        tables=[Table(heading, [_row(place, runs) for place, runs in rows.items()])],
        goals=[
            Goal(
                "no false alarm above 90 s",
                _alarms(long) == 0 if long else None,
                f"{_alarms(long):.1f} a run" if long else "-",
            ),
            *(_false_alarms(period_s, news.get(period_s, [])) for period_s in FALSE_ALARMS_S),
        ],
        text=[
            "The paper finds false alarms at 15 and 30 s, none above 90 s, inconsistent rates below 30 s, and its best "
            "results at 60 s. Inconsistent are here runs whose AR differs by more than a tenth. A limit starts from "
            "what was admitted in the interval of the alarm: not T alone counts, but where in its interval the crowd "
            "sets in (its time modulo T).",
            " ".join(
                ["Row by row, against the paper:", *(_compared(period, runs, best) for period, runs in news.items())]
            ),
            _no_false_alarms(rows),
            _longer(rows),
            _production(rows),
        ],
        summary={
            f"{variant} {period:g}": [one.result["crowd"] for one in runs] for (variant, period), runs in rows.items()
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """AR and admitted rate against time, by interval."""
    upper, lower = simulated.above_and_below(figure, "admitted requests/s", "AR, kbit/s")
    for (variant, period), runs in simulated.grouped(records, _place).items():
        label = f"T = {period:g} s{'' if variant == 'news' else ', production'}"
        upper.plot(*simulated.column(runs[0], simulated.ADMITTED), label=label, lw=0.8)
        lower.plot(*simulated.column(runs[0], simulated.AR, 1e-3), lw=0.8)
    upper.legend(fontsize="x-small", ncols=2)


EXPERIMENT = Experiment(
    name="news-fig15",
    title="The detection interval, simulated",
    source="Paper 003, Fig. 15",
    about="The simulation of Table I with NEWS as published and T from 10 to 120 s; in the full form production mode, "
    "too.",
    points=points,
    compute=simulated.measure,
    report=report,
    draw=draw,
)
