"""One fast connection beside slow connections; the server has a send-buffer budget of 256 KB for all of them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table
from experiments.intervals import mean_of
from experiments.records import grouped, matching
from experiments.sabt_sharing import ABT, EQ, PAPER, PLAIN, SABT, SHARINGS
from topo.labs.sharing import SETTLE_S, STARTING_S, SharingLab, Way

WAYS = (Way("10.101.0.1", 0.02, 1, 50, 64), Way("10.102.0.1", 0.002, 15, 10, 64))
"""Paths of the fast connection and of the slow connections, which share an Ethernet of 10 Mbit/s."""
BUDGET = 256_000
SMALL, LARGE = "fixed 16 KB", "fixed 64 KB"
SENDS: Mapping[str, Mapping[str, object] | None] = {
    PLAIN: None,
    **{how: {"budget": BUDGET, **options} for how, options in SHARINGS.items()},
    SMALL: {"budget": BUDGET, "sharing": "fixed", "size": 16 << 10},
    LARGE: {"budget": BUDGET, "sharing": "fixed", "size": 64 << 10},
}
SLOW, QUICK_SLOW = (0, 1, 3, 7, 15), (0, 15)
SECONDS, QUICK_SECONDS = 60.0, 15.0
KEPT, FAR_BELOW = 0.9, 0.5


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every sharing method, without slow connections and with several numbers of them."""
    seconds = QUICK_SECONDS if quick else SECONDS
    return [
        Point(
            f"{how} {slow} of {seconds:g} s",
            {"how": how, "slow": slow, "seconds": seconds},
            seconds + SETTLE_S + STARTING_S,
            "place",
        )
        for slow in (QUICK_SLOW if quick else SLOW)
        for how in SENDS
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab, and yield the function that measures a point."""
    del group, say
    with SharingLab(WAYS) as lab:
        yield lambda point: lab.share(
            SENDS[point.parameters["how"]], (1, point.parameters["slow"]), point.parameters["seconds"]
        )


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each sharing method and each number of slow connections."""
    runs = grouped(records, lambda record: (record.parameters["how"], record.parameters["slow"]))
    fast = {key: mean_of([record.result["mbit_s"][0] for record in members]).value for key, members in runs.items()}
    slow = {key: mean_of([record.result["mbit_s"][1] for record in members]).value for key, members in runs.items()}
    rows = [[how, str(many), f"{fast[how, many]:.1f}", f"{slow[how, many]:.1f}"] for how, many in runs]
    most = max((many for _, many in runs), default=0)
    whole = all((how, many) in runs for how in SENDS for many in (0, most))
    return Report(
        [Table(("sharing", "slow", "fast (Mbit/s)", "slow together (Mbit/s)"), rows)],
        _goals(fast, most) if whole else (),
        {f"{how}, {many}": value for (how, many), value in fast.items()},
    )


def _goals(fast: Mapping[tuple[str, int], float], most: int) -> Sequence[Goal]:
    goals: list[Goal] = []
    for how in (SABT, PAPER):
        share_kept, of_abt, of_plain = (
            fast[how, most] / other for other in (fast[how, 0], fast[ABT, most], fast[PLAIN, most])
        )
        seen = f"{share_kept:.2f}; {of_plain:.2f} of plain Linux"
        goals += [
            Goal(f"{how}: keeps at least 0.9 of its rate alone", share_kept >= KEPT, seen),
            Goal(f"{how}: at or above ABT", of_abt >= 1, f"{of_abt:.2f} of it"),
        ]
    low = {how: fast[how, most] / fast[SABT, most] for how in (SMALL, EQ)}
    said = ", ".join(f"{ratio:.2f}" for ratio in low.values())
    return [*goals, Goal("fixed 16 KB and EQ below half of SABT", max(low.values()) < FAR_BELOW, said)]


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the fast connection's rate against the number of slow connections."""
    axes = figure.subplots()
    for how in SENDS:
        runs = matching(records, how=how)
        mine = sorted((record.parameters["slow"], record.result["mbit_s"][0]) for record in runs)
        axes.plot([slow for slow, _ in mine], [rate for _, rate in mine], "o-", label=how)
    axes.set(xlabel="slow connections", ylabel="fast connection (Mbit/s)", ylim=(0, None))
    axes.legend()
    axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="sabt-fig8",
    title="One fast connection beside slow ones",
    source="Matsuo et al., Figure 8",
    about=(
        "One Reno connection at 50 Mbit/s and 20 ms, beside others that share 10 Mbit/s at 2 ms. The server has 256 KB;"
        " ABT goes by twice what is in flight, and the first one's rate counts."
    ),
    points=points,
    report=report,
    draw=draw,
    place=place,
    needs_root=True,
)
