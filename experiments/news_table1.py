"""Table I and Figs. 12 to 14 of Chen & Heidemann: admitted requests, rates of the fastest responses, and losses, by
limit."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from experiments import simulated
from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report
from experiments.records import Columns, grouped, table

STATIC = (60.0, 80.0, 100.0, 120.0)
SEEDS = (1, 2, 3)
WIDER_BIT_PER_S = 7e6
"""Rate of a wider link in the runs without control; these runs are as short as in the quick form."""
PAPER_ALARM_S = 20.0
PAPER_LOSS, PAPER_LOSS_NEWS = 0.25, 0.02
LOSS_NEAR = 0.1
"""A share of lost packets agrees with Chen & Heidemann's share if the two shares differ by at most this much."""
AR_KEPT = 0.94
"""The published ratio of AR (response rate of the fastest flows) under NEWS to AR before the crowd: 90.5 of 96
kbit/s."""
FULL = 0.9
"""A link counts as nearly full if its utilisation is at least this share."""
BEST_STATIC_SHARE = 0.89
"""Ratio of AR under NEWS to AR under the best static limit, from section 7.3 of Chen & Heidemann: "only about 11% less
than the best static rate limiter"."""
PAPER = {
    "none": "209.7 / 0 % / 58.2 / 25 %",
    "news": "107.2 / 32.4 % / 90.5 / 2 %",
    "static 60": "60 / 70.2 % / 101.4 / 0",
    "static 80": "80 / 56.5 % / 100.2 / 0",
    "static 100": "100 / 40.2 % / 94.0 / 1 %",
    "static 120": "120 / 32.8 % / 90.8 / 2 %",
}


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every row of the table (in the quick form only one of the static limits) and
    production mode; in the full form also NEWS with hot-spot identification and a wider link."""
    made: list[Point] = []
    for seed in SEEDS[:1] if quick else SEEDS:
        for variant in ("none", "news", "production") if quick else ("none", "news", "news-hsi", "production"):
            made.append(simulated.point(variant, variant, quick=quick, seed=seed))
        for rate in STATIC[-1:] if quick else STATIC:
            made.append(simulated.point(f"static {rate:g}", "none", quick=quick, seed=seed, static_per_s=rate))
        if not quick:
            made.append(simulated.point(_wider(), "none", quick=True, seed=seed, link_bit_per_s=WIDER_BIT_PER_S))
    return made


def _wider() -> str:
    return f"none, link of {WIDER_BIT_PER_S / 1e6:g} Mbit/s"


def label(record: Record) -> str:
    """Return the name of the table row to which a record belongs."""
    if record.parameters.get("link_bit_per_s") == WIDER_BIT_PER_S:
        return f"{_wider()}, {_length_s([record]):,g} s"
    rate = record.parameters.get("static_per_s")
    return record.parameters["variant"] if rate is None else f"static {rate:g}"


def _length_s(runs: Sequence[Record]) -> float:
    return simulated.dumbbell(runs[0].parameters).end_s


Rows = Mapping[str, Sequence[Record]]


def _static_ar(rows: Rows) -> dict[str, float]:
    """Return AR (the response rate of the fastest flows) by name of the static limit, the lowest limit first."""
    named = {name: simulated.mean(runs, "ar_kbps") for name, runs in rows.items() if name.startswith("static")}
    return dict(sorted(named.items(), key=lambda entry: float(entry[0].split()[1])))


def _best_static(rows: Rows) -> list[Goal]:
    """Return the goal that AR under NEWS is near AR under the best static limit (Fig. 14)."""
    static = _static_ar(rows)
    if not static:
        return []
    best = max(static, key=lambda name: static[name])
    ours = simulated.mean(rows["news"], "ar_kbps")
    text = "AR within 11 % of that of the best static limit (Fig. 14)"
    return [Goal(text, ours >= BEST_STATIC_SHARE * static[best], f"{ours:.1f} against {static[best]:.1f} of {best}")]


def _kept(runs: Sequence[Record]) -> float:
    """Return the lowest ratio, over all runs, of AR in the crowd to AR before the crowd."""
    return min(record.result["crowd"]["ar_kbps"] / record.result["quiet"]["ar_kbps"] for record in runs)


def _published(rows: Rows) -> list[Goal]:
    """Return the goals that Chen & Heidemann's results set."""
    if "news" not in rows or "none" not in rows:
        return []
    news, none = rows["news"], rows["none"]
    loss, without = ([record.result["crowd"]["response_loss"] for record in runs] for runs in (news, none))
    mean = statistics.fmean(without)
    return [
        Goal(
            f"at most {PAPER_LOSS_NEWS:.0%} of the packets are lost under NEWS where {PAPER_LOSS:.0%} or more are "
            "without control",
            max(loss) <= PAPER_LOSS_NEWS and min(without) >= PAPER_LOSS,
            f"{max(loss):.1%} under NEWS, {min(without):.0%} without",
        ),
        Goal(
            f"without control the paper's {PAPER_LOSS:.0%} are lost, to 10 points",
            abs(mean - PAPER_LOSS) <= LOSS_NEAR,
            f"{mean:.0%}",
        ),
        Goal(
            "alarm 20 s after the onset (T = 60 s)",
            all(abs(detected_s - PAPER_ALARM_S) < 1 for detected_s in simulated.detections_s(news)),
            simulated.detection(news),
        ),
        Goal("AR at least 0.94 of before the crowd (90.5 of 96)", _kept(news) >= AR_KEPT, f"{_kept(news):.2f}"),
        *_best_static(rows),
    ]


def _production(rows: Rows) -> list[Goal]:
    """Return the goals of production mode: an alarm no later than in Chen & Heidemann's run, a link that is nearly
    full, and a ratio of AR in the crowd to AR before the crowd of at least AR_KEPT."""
    if (runs := rows.get("production")) is None:
        return []
    used = min(record.result["crowd"]["bottleneck_used"] for record in runs)
    return [
        Goal(
            f"production mode: alarm within {PAPER_ALARM_S:g} s of the onset",
            max(simulated.detections_s(runs)) <= PAPER_ALARM_S,
            simulated.detection(runs),
        ),
        Goal(f"production mode: the link at least {FULL:.0%} full", used >= FULL, f"{used:.0%}"),
        Goal("production mode: AR at least 0.94 of before the crowd", _kept(runs) >= AR_KEPT, f"{_kept(runs):.2f}"),
    ]


COLUMNS: Columns[str] = {
    "": lambda name, _: name,
    **simulated.columns("admitted/s", "turned away", "AR before (kbit/s)", "AR (kbit/s)", "loss", "link used"),
    **simulated.columns("alarm after (s)"),
    "paper: admitted / rejected / AR / loss": lambda name, _: PAPER.get(name, "-"),
}


def report(records: Sequence[Record]) -> Report:
    """Report the measured table beside Chen & Heidemann's numbers, and the claims of their sections 7.2 and 7.3."""
    rows = grouped(records, label)
    return Report(
        tables=[table(COLUMNS, rows)],
        goals=[*_published(rows), *_production(rows)],
        summary={name: [record.result["crowd"] for record in runs] for name, runs in rows.items()},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw admitted and offered rates (Fig. 12) and AR (Figs. 13 and 14) against time."""
    upper, lower = simulated.above_and_below(figure, "admitted requests/s", "AR, kbit/s")
    for name, runs in grouped(records, label).items():
        if name.startswith(_wider()):
            continue
        upper.plot(*simulated.column(runs[0], simulated.ADMITTED), label=name)
        lower.plot(*simulated.column(runs[0], simulated.AR, 1e-3), label=name)
        if name == "news":
            upper.plot(*simulated.column(runs[0], simulated.OFFERED), ":", label="news, offered")
    upper.set_ylim(0, 500)
    upper.legend(fontsize="x-small", ncols=2)


EXPERIMENT = Experiment(
    name="news-table1",
    title="NEWS and static limits, simulated",
    source="Chen & Heidemann, Table I and Figs. 12 to 14",
    about="The paper's two-level dumbbell, simulated with the real controller: 35 requests/s, from 1,000 s on "
    "210, T = 60 s. The paper gives no link rate: 4 Mbit/s just fits its static limits.",
    points=points,
    compute=simulated.measure,
    report=report,
    draw=draw,
)
