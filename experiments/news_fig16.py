"""Fig. 16 and Section 7.6 of paper 003: a bystander's transfer, impatient users, a server with a rate and a buffer;
delta and p."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments import simulated
from experiments.experiment import Experiment, Goal, Point, Record, Report, Table
from sim.dumbbell import SERVER_BYTES_PER_S

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS = (1, 2, 3)
CASES = {
    "FTP bystander": {"ftp": True},
    "impatient users": {"patience_s": 60.0},
    "slow server": {"server_room": 1_000_000},
    "slow server, buffer of 1,000": {"server_room": 1000},
    "delta 0.05": {"tolerance": 0.05},
    "delta 0.2": {"tolerance": 0.2},
    "p 5 %": {"fast_share": 0.05},
    "p 20 %": {"fast_share": 0.2},
}
SENSITIVE = tuple(name for name in CASES if name.startswith(("delta", "p ")))
"""The paper has these at 0.1 and 10 % and tries no other."""
BOTH_MODES = ("FTP bystander", "impatient users")
"""Cases that are run in production mode too, in the full form."""
PAPER = {
    "FTP bystander": "AR 90.2 -> 86.4; FTP 337 -> 10 without, 120 with NEWS",
    "impatient users": "similar performance",
    "slow server": "similar performance",
    "slow server, buffer of 1,000": "half of the requests are dropped by the server; nothing is overloaded",
}
PAPER_FTP_KBPS, PAPER_FTP_NEWS_KBPS, PAPER_FTP_NONE_KBPS = 337.0, 120.0, 10.0
PAPER_LOSS_NONE, PAPER_ADMITTED_PER_S = 0.25, 107.2
"""Of Table I."""
SIMILAR = 0.1
"""Rates that differ by less than this part are called similar."""


def points(quick: bool) -> Sequence[Point]:
    """Every case under NEWS, the bystander's and the slow servers' without control too; some in production mode."""
    made: list[Point] = []
    seeds = SEEDS[:1] if quick else SEEDS
    for seed in seeds:
        for name, changes in list(CASES.items())[: 2 if quick else None]:
            made.append(simulated.point(f"{name}, NEWS", "news", quick=quick, seed=seed, **changes))
            if "ftp" in changes or "server_room" in changes:
                made.append(simulated.point(f"{name}, none", "none", quick=quick, seed=seed, **changes))
    for seed in () if quick else seeds:
        made += [
            simulated.point(f"{name}, production", "production", quick=quick, seed=seed, **CASES[name])
            for name in BOTH_MODES
        ]
    return made


Rows = Mapping[str, Sequence[Record]]


def _name(record: Record) -> str:
    return record.key.rpartition(" #")[0].removesuffix(" quick")


def _row(name: str, runs: Sequence[Record]) -> list[str]:
    case, _, treated = name.rpartition(", ")
    ftp = runs[0].parameters.get("ftp", False)
    return [
        name,
        simulated.text(runs, "admitted_per_s"),
        simulated.text(runs, "ar_kbps", window="quiet"),
        simulated.text(runs, "ar_kbps"),
        simulated.percent(runs, "response_loss", 1),
        simulated.percent(runs, "turned_away"),
        simulated.detection(runs),
        f"{simulated.mean(runs, 'false_alarms'):.1f}",
        simulated.text(runs, "bystander_goodput_kbps", 0, window="quiet") if ftp else "-",
        simulated.text(runs, "bystander_goodput_kbps", 0) if ftp else "-",
        "-" if treated == "production" else PAPER.get(case, "-"),
    ]


def _kept(runs: Sequence[Record], name: str) -> float:
    """A figure during the crowd, in parts of what it was before."""
    return simulated.mean(runs, name) / simulated.mean(runs, name, "quiet")


def _bystander(rows: Rows) -> str:
    """Say where the bystander differs from the paper's, and why."""
    said: list[str] = []
    if (runs := rows.get("FTP bystander, NEWS")) is not None:
        goodput = simulated.mean(runs, "bystander_goodput_kbps")
        admitted, used = (simulated.mean(runs, name) for name in ("admitted_per_s", "bottleneck_used"))
        more = "more than" if goodput > (1 + SIMILAR) * PAPER_FTP_NEWS_KBPS else "against"
        said.append(
            f"Under NEWS it keeps {goodput:.0f} kbit/s, {more} the paper's {PAPER_FTP_NEWS_KBPS:.0f}: "
            f"{admitted:.0f} requests/s are admitted (Table I: {PAPER_ADMITTED_PER_S:.0f}), and the link is {used:.0%} "
            f"full. The crowd's own AR keeps {_kept(runs, 'ar_kbps'):.0%} of what it was (paper: {86.4 / 90.2:.0%})."
        )
    if (runs := rows.get("FTP bystander, none")) is not None:
        goodput, loss = (simulated.mean(runs, name) for name in ("bystander_goodput_kbps", "response_loss"))
        said.append(
            f"Without control it is left with {goodput:.0f} kbit/s (paper: {PAPER_FTP_NONE_KBPS:.0f}), as {loss:.0%} "
            f"of the packets are lost (Table I: {PAPER_LOSS_NONE:.0%}); `news-table1` says why more."
        )
    if (runs := rows.get("FTP bystander, production")) is not None:
        goodput, used = (simulated.mean(runs, name) for name in ("bystander_goodput_kbps", "bottleneck_used"))
        said.append(f"In production mode it keeps {goodput:.0f} kbit/s, of a link that is {used:.0%} full.")
    opening = f"The bystander's transfer is limited by its sender to the {PAPER_FTP_KBPS:.0f} kbit/s of the paper's "
    return " ".join([f"{opening}quiet time.", *said]) if said else ""


def _impatient(rows: Rows) -> str:
    said = [
        f"{title} AR keeps {_kept(runs, 'ar_kbps'):.0%} of what it was before the crowd"
        for title, runs in (
            ("Under NEWS", rows.get("impatient users, NEWS")),
            ("in production mode", rows.get("impatient users, production")),
        )
        if runs is not None
    ]
    if not said:
        return ""
    return (
        "Impatient users wait 60 s in the mean and then leave or wait on, with equal chances (section 7.6.1). "
        f"{', '.join(said)}; the paper finds 'similar performance' (Table I: {90.5 / 96:.0%})."
    )


def _slow(rows: Rows) -> str:
    """Say what the slow server turned away, and whether the load asked for more than it can do."""
    if not any(name.startswith("slow server") for name in rows):
        return ""
    said = [
        "The slow server sends 1,000 KB/s, one request after the other (section 7.6.2): twice what the link carries."
    ]
    if (runs := rows.get("slow server, NEWS")) is not None:
        said.append(
            f"With a queue that never fills, AR keeps {_kept(runs, 'ar_kbps'):.0%} of what it was under NEWS "
            "(paper: 'similar performance')."
        )
    if (runs := rows.get("slow server, buffer of 1,000, none")) is not None:
        away, used = (simulated.mean(runs, name) for name in ("turned_away", "bottleneck_used"))
        agrees = "as in the paper" if away > 0.5 and used < 1 - SIMILAR else "not as in the paper"
        said.append(
            f"With a buffer of 1,000 requests and no control, {away:.0%} are never connected, the link is {used:.0%} "
            f"full, {agrees}, where the server drops more than half and neither it nor the link is overloaded."
        )
        admitted, bits = (simulated.mean(runs, name) for name in ("admitted_per_s", "goodput_kbps"))
        size = bits / 8 / max(1e-9, simulated.mean(runs, "finished_per_s"))
        if agrees.startswith("not") and admitted * size < SERVER_BYTES_PER_S / 1000:
            said.append(
                f"By the answers that came whole ({size:.1f} KB in the mean), the requests ask for "
                f"{admitted * size:.0f} KB/s: the server has room for them, the link has not."
            )
    return " ".join(said)


def _sensitivity(rows: Rows) -> str:
    """Say what other values of delta and p change."""
    known = {name: runs for case in SENSITIVE if (runs := rows.get(name := f"{case}, NEWS")) is not None}
    if not known:
        return ""
    ar = {name: simulated.mean(runs, "ar_kbps") for name, runs in known.items()}
    low, high = min(ar, key=lambda name: ar[name]), max(ar, key=lambda name: ar[name])
    alarmed = [name for name, runs in known.items() if simulated.mean(runs, "false_alarms") > 0]
    late = [name for name, runs in known.items() if max(simulated.detections_s(runs)) > runs[0].result["period_s"]]
    return (
        f"Sensitivity to delta and p (the paper has 0.1 and 10 %): AR is between {ar[low]:.0f} ({_case(low)}) and "
        f"{ar[high]:.0f} kbit/s ({_case(high)}). False alarms: {', '.join(map(_case, alarmed)) or 'none'}. An alarm "
        f"later than one interval, or none: {', '.join(map(_case, late)) or 'nowhere'}."
    )


def _case(name: str) -> str:
    return name.rpartition(", ")[0]


def report(records: Sequence[Record]) -> Report:
    """A row a case."""
    rows = simulated.grouped(records, _name)
    goals: list[Goal] = []
    if (runs := rows.get("FTP bystander, NEWS")) is not None:
        kept = min(
            one.result["crowd"]["bystander_goodput_kbps"] / one.result["quiet"]["bystander_goodput_kbps"]
            for one in runs
        )
        goals.append(
            Goal(
                "the bystander keeps at least 120 of 337 kbit/s under NEWS",
                kept >= PAPER_FTP_NEWS_KBPS / PAPER_FTP_KBPS,
                f"{kept:.0%}",
            )
        )
    heading = [
        "",
        "admitted/s",
        "AR before",
        "AR (kbit/s)",
        "loss",
        "turned away",
        "alarm after (s)",
        "false alarms a run",
        "FTP before",
        "FTP (kbit/s)",
        "paper",
    ]
    return Report(
        tables=[Table(heading, [_row(name, runs) for name, runs in rows.items()])],
        goals=goals,
        text=[_bystander(rows), _impatient(rows), _slow(rows), _sensitivity(rows)],
        summary={name: [one.result["crowd"] for one in runs] for name, runs in rows.items()},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """AR, and the bystander's goodput, against time."""
    upper, lower = simulated.above_and_below(figure, "AR, kbit/s", "FTP, kbit/s")
    for name, runs in simulated.grouped(records, _name).items():
        one = runs[0].result
        upper.plot(*simulated.column(runs[0], simulated.AR, 1e-3), label=name)
        if one["bulk"]:
            rates = [size * 8e-3 / one["period_s"] for _, size in one["bulk"]]
            lower.plot([moment for moment, _ in one["bulk"]], rates, label=name)
    for axes in (upper, lower):
        axes.legend(fontsize="x-small", ncols=2)


EXPERIMENT = Experiment(
    name="news-fig16",
    title="Bystander traffic and other conditions, simulated",
    source="Paper 003, Fig. 16 and Section 7.6",
    about="The simulation of Table I with one condition changed at a time; the table's rows name them.",
    points=points,
    compute=simulated.measure,
    report=report,
    draw=draw,
)
