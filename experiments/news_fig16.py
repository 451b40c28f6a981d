"""Fig. 16 and Section 7.6 of paper 003: a bystander's transfer, impatient users, a server with a rate and a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments import simulated
from experiments.experiment import Experiment, Goal, Point, Record, Report, Table, anywhere

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
PAPER = {
    "FTP bystander": "AR 90.2 -> 86.4; FTP 337 -> 10 without, 120 with NEWS",
    "impatient users": "similar performance",
    "slow server": "similar performance",
    "slow server, buffer of 1,000": "half of the requests are dropped by the server; nothing is overloaded",
}


def points(quick: bool) -> Sequence[Point]:
    """Every case under NEWS, the bystander's without control too."""
    made: list[Point] = []
    for seed in SEEDS[:1] if quick else SEEDS:
        for name, changes in list(CASES.items())[: 2 if quick else None]:
            made.append(simulated.point(f"{name}, NEWS", "news", quick=quick, seed=seed, **changes))
            if "ftp" in changes or "server_room" in changes:
                made.append(simulated.point(f"{name}, none", "none", quick=quick, seed=seed, **changes))
    return made


def _name(record: Record) -> str:
    return record.key.rpartition(" #")[0].removesuffix(" quick")


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
            Goal("the bystander keeps at least 120 of 337 kbit/s under NEWS", kept >= 120 / 337, f"{kept:.0%}")
        )
    return Report(
        tables=[
            Table(
                ["", "admitted/s", "AR before", "AR (kbit/s)", "loss", "FTP before", "FTP (kbit/s)", "paper"],
                [
                    [
                        name,
                        simulated.text(runs, "admitted_per_s"),
                        simulated.text(runs, "ar_kbps", window="quiet"),
                        simulated.text(runs, "ar_kbps"),
                        simulated.percent(runs, "response_loss", 1),
                        simulated.text(runs, "bystander_goodput_kbps", 0, window="quiet"),
                        simulated.text(runs, "bystander_goodput_kbps", 0),
                        PAPER.get(name.rpartition(",")[0], "-"),
                    ]
                    for name, runs in rows.items()
                ],
            )
        ],
        goals=goals,
        text=[
            "The bystander's transfer is limited by its sender to the 337 kbit/s of the paper's quiet time. Impatient "
            "users wait 60 s in the mean and then leave or wait on, with equal chances (section 7.6.1). The "
            "slow server "
            "sends 1,000 KB/s, one request after the other (section 7.6.2): twice what the link carries.",
        ],
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
    about="The simulation of Table I with one condition changed at a time: a bulk transfer beside the crowd, users who "
    "leave, a server that is itself limited, other values of delta and p.",
    points=points,
    place=anywhere(simulated.measure),
    report=report,
    draw=draw,
)
