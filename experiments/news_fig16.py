"""Fig. 16 and Section 7.6 of Chen & Heidemann: a bystander's transfer, impatient users, a slow server. Also the effect
of delta (tolerance of AR), p (share of the fastest responses), and the parameters without a published value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments import simulated
from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report
from experiments.records import Columns, grouped, table

SEEDS, SHORT_SEEDS = (1, 2, 3), (1, 2, 3, 4, 5)
"""Seeds of the long runs (4,000 s, as in Chen & Heidemann) and of the short runs (as in the quick form), which have
more repetitions."""
CASES: Mapping[str, Mapping[str, Any]] = {
    "FTP bystander": {"ftp": True},
    "impatient users": {"patience_s": 60.0},
    "slow server": {"server_room": 1_000_000},
    "slow server, buffer of 1,000": {"server_room": 1000},
}
QUICK_CASES = ("FTP bystander", "impatient users")
BOTH_MODES = ("FTP bystander", "impatient users")
"""Cases that the full form also runs in production mode."""
AS_PUBLISHED = "as published"
"""Name of the row with the default parameters. delta 0.1 and p 10 % are the values of Chen & Heidemann; step 0.2 and a
bucket of 0.25 s are values of sluice, because no values are published."""
DELTA_P: Mapping[str, Mapping[str, Any]] = {
    **{f"delta {value:g}": {"tolerance": value} for value in (0.02, 0.05, 0.2, 0.4)},
    **{f"p {100 * value:g} %": {"fast_share": value} for value in (0.01, 0.05, 0.2, 0.5)},
}
HALF_AND_DOUBLE = ("delta 0.05", "delta 0.2", "p 5 %", "p 20 %")
OWN_VALUES: Mapping[str, Mapping[str, Any]] = {
    **{f"step {value:g}": {"step": value} for value in (0.05, 0.1, 0.4)},
    **{f"bucket {value:g} s": {"bucket_s": value} for value in (0.05, 1.0, 4.0)},
}
OTHERS = 100
"""Number of destinations in addition to the target; without others, the hot-spot table has a single candidate."""
TABLE_SIZES = (64, 8, 16, 256)
SENSITIVE: Mapping[str, Mapping[str, Any]] = {
    AS_PUBLISHED: {},
    **DELTA_P,
    **OWN_VALUES,
    **{f"N {size}, {OTHERS} others": {"table_size": size, "others": OTHERS} for size in TABLE_SIZES},
}
PAPER = {
    "FTP bystander, NEWS": "AR 90.2 -> 86.4; FTP 337 -> 120",
    "FTP bystander, none": "FTP 337 -> 10",
    "impatient users, NEWS": "similar performance",
    "slow server, NEWS": "similar performance",
    "slow server, buffer of 1,000, none": "more than half of the requests are dropped by the server; nothing is "
    "overloaded",
}
PAPER_FTP_KBPS, PAPER_FTP_NEWS_KBPS = 337.0, 120.0
SIMILAR = 0.1
"""Largest relative difference at which two ratios of AR in the crowd to AR before the crowd count as similar."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure.

    The full form has every case under NEWS and without control, the cases of BOTH_MODES in production mode, and short
    runs that vary the parameters. The quick form has QUICK_CASES under NEWS, and the FTP case without control.
    """
    made: list[Point] = []
    seeds = SEEDS[:1] if quick else SEEDS
    for seed in seeds:
        for name in QUICK_CASES if quick else CASES:
            made.append(simulated.point(f"{name}, NEWS", "news", quick=quick, seed=seed, **CASES[name]))
            if not quick or "ftp" in CASES[name]:
                made.append(simulated.point(f"{name}, none", "none", quick=quick, seed=seed, **CASES[name]))
    for seed in () if quick else seeds:
        made += [
            simulated.point(f"{name}, production", "production", quick=quick, seed=seed, **CASES[name])
            for name in BOTH_MODES
        ]
    for seed in () if quick else SHORT_SEEDS:
        made += [
            simulated.point(name, "news-hsi" if "others" in changes else "news", quick=True, seed=seed, **changes)
            for name, changes in SENSITIVE.items()
        ]
    return made


Rows = Mapping[str, Sequence[Record]]


def _name(record: Record) -> str:
    return record.key.rpartition(" #")[0].removesuffix(" quick")


def _bulk(runs: Sequence[Record], window: str) -> str:
    """Return the goodput of the bystander's FTP transfer as text; "-" in cases without a transfer."""
    ftp = runs[0].parameters.get("ftp", False)
    return simulated.text(runs, "bystander_goodput_kbps", 0, window=window) if ftp else "-"


def _hot_spot(runs: Sequence[Record]) -> str:
    named, right = (sum(record.result["hot_spot"][count] for record in runs) for count in ("named", "right"))
    return f"{right} of {named}" if named else "-"


MEASURED = ("admitted/s", "AR before", "AR (kbit/s)", "loss")
COLUMNS: Columns[str] = {
    "": lambda name, _: name,
    **simulated.columns(*MEASURED, "turned away", "alarm after (s)", "false alarms a run"),
    "FTP before": lambda _, runs: _bulk(runs, "quiet"),
    "FTP (kbit/s)": lambda _, runs: _bulk(runs, "crowd"),
    "paper": lambda name, _: PAPER.get(name, "-"),
}
SENSITIVE_COLUMNS: Columns[str] = {
    "": lambda name, _: name,
    **simulated.columns("alarm after (s)", "false alarms a run", *MEASURED, "link used"),
    "hot spot right": lambda _, runs: _hot_spot(runs),
}


def _kept(runs: Sequence[Record], name: str) -> float:
    """Return the ratio of a figure during the crowd to its value before the crowd."""
    return simulated.mean(runs, name) / simulated.mean(runs, name, "quiet")


def _sensitive(rows: Rows) -> Rows:
    """Return the rows of the runs that vary a parameter, in the order of SENSITIVE."""
    return {name: runs for name in SENSITIVE if (runs := rows.get(name)) is not None}


def _differs(runs: Sequence[Record], usual: Sequence[Record]) -> list[str]:
    """Return the effects of a parameter's value compared with the usual value: a late alarm, more false alarms, or
    another ratio of AR in the crowd to AR before the crowd."""
    said: list[str] = []
    if not all(moment <= record.result["period_s"] for record in runs for moment in simulated.detections_s([record])):
        said.append(simulated.alarm(runs))
    if simulated.mean(runs, "false_alarms") > simulated.mean(usual, "false_alarms"):
        said.append(f"{simulated.mean(runs, 'false_alarms'):.1f} false alarms a run")
    # AR is the response rate of the fastest p %, so its level depends on p. The ratio of AR in the crowd to AR before
    # the crowd is compared instead.
    ours, theirs = _kept(runs, "ar_kbps"), _kept(usual, "ar_kbps")
    if not abs(ours / theirs - 1) <= SIMILAR:
        said.append(f"AR keeps {ours:.0%} rather than {theirs:.0%}")
    return said


def _insensitive(rows: Rows) -> list[Goal]:
    """Return the goal that half and double of delta and of p have the same effect as the published values."""
    published = rows.get(AS_PUBLISHED)
    known = {name: runs for name in HALF_AND_DOUBLE if (runs := rows.get(name)) is not None}
    if published is None or not known:
        return []
    off = {name: said for name, runs in known.items() if (said := _differs(runs, published))}
    return [
        Goal(
            "with half and double of delta and p the alarm comes within an interval, no false alarm is added, and AR "
            "keeps what it keeps with the paper's values, to a tenth",
            not off,
            "; ".join(f"{name}: {', '.join(said)}" for name, said in off.items()) or f"all of {', '.join(known)}",
        )
    ]


def _protected(rows: Rows) -> list[Goal]:
    """Return a goal for each mode: the ratio of the bystander's goodput in the crowd to its goodput before the crowd is
    as high as published."""
    asked = PAPER_FTP_NEWS_KBPS / PAPER_FTP_KBPS
    goals: list[Goal] = []
    for mode, runs in (
        ("under NEWS", rows.get("FTP bystander, NEWS")),
        ("in production mode", rows.get("FTP bystander, production")),
    ):
        if runs is not None:
            goodput = min(
                record.result["crowd"]["bystander_goodput_kbps"] / record.result["quiet"]["bystander_goodput_kbps"]
                for record in runs
            )
            text = f"the bystander keeps at least {asked:.0%} (120 of 337 kbit/s) {mode}"
            goals.append(Goal(text, goodput >= asked, f"{goodput:.0%}"))
    return goals


def report(records: Sequence[Record]) -> Report:
    """Report a table with a row for each case, and a table with a row for each value of a parameter."""
    rows = grouped(records, _name)
    cases = {name: runs for name, runs in rows.items() if name not in SENSITIVE}
    tables = [table(COLUMNS, cases), table(SENSITIVE_COLUMNS, _sensitive(rows))]
    return Report(
        tables=[made for made in tables if made.rows],
        goals=[*_protected(rows), *_insensitive(rows)],
        summary={name: [record.result["crowd"] for record in runs] for name, runs in rows.items()},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw AR (the response rate of the fastest flows) and the bystander's goodput against time."""
    upper, lower = simulated.above_and_below(figure, "AR, kbit/s", "FTP, kbit/s")
    for name, runs in grouped(records, _name).items():
        if name in SENSITIVE:
            continue
        result = runs[0].result
        upper.plot(*simulated.column(runs[0], simulated.AR, 1e-3), label=name)
        if result["bulk"]:
            rates = [size * 8e-3 / result["period_s"] for _, size in result["bulk"]]
            lower.plot([moment for moment, _ in result["bulk"]], rates, label=name)
    for axes in (upper, lower):
        axes.legend(fontsize="x-small", ncols=2)


EXPERIMENT = Experiment(
    name="news-fig16",
    title="Bystander traffic and other conditions, simulated",
    source="Chen & Heidemann, Fig. 16 and section 7.6",
    about="The simulation of Table I with one condition or one parameter changed at a time. As published: delta "
    "0.1, p 10 %, and (not in the paper) step 0.2, bucket 0.25 s, N 64.",
    points=points,
    compute=simulated.measure,
    report=report,
    draw=draw,
)
