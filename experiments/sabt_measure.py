"""The switch's measurements of transfers, compared with the sender's TCP_INFO and with a packet capture at the
sender."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from experiments.experiment import Axes, Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.sabtplace import CapturedPlace
from topo.labs.transfers import Distance

DISTANCES = (
    Distance("10.101.0.1", 0.001, 2),
    Distance("10.102.0.1", 0.02, 2),
    Distance("10.103.0.1", 0.1, 6),
    Distance("10.104.0.1", 0.3, 12),
)
"""Clients at each distance: address, delay, and number of connections. A longer path with losses carries fewer segments
per second and connection, so it has more connections."""
CONGESTION = ("reno", "cubic")
LOSSES = (0.0, 0.005, 0.02, 0.05)
SECONDS, QUICK_SECONDS, LOSSLESS_SECONDS = 120.0, 20.0, 10.0
STARTING_S = 7.0
SHARE, SLACK_S = 0.1, 0.0002
"""Two round-trip times agree if they differ by at most this share of the kernel's time plus this many seconds."""
LEAST_EVENTS = 50
MARKS = {"reno": "o", "cubic": "^"}


@dataclass(frozen=True, slots=True)
class Path:
    """The transfers that the switch has measured for one combination of congestion control, loss rate and delay."""

    congestion: str
    loss: float
    delay_s: float
    transfers: Sequence[Values]

    def total(self, *names: str) -> int:
        """Return the sum of a count over all transfers; `names` are the keys that lead to the count."""
        return sum(_named(transfer, names) for transfer in self.transfers)

    def mean_s(self, *names: str) -> float:
        """Return the mean over transfers of a time in seconds; `names` are the keys that lead to the time."""
        return statistics.fmean(_named(transfer, names) for transfer in self.transfers)

    @property
    def name(self) -> str:
        """Return a description of the path as text."""
        return f"{self.congestion}, {self.loss:.1%}, {1e3 * self.delay_s:g} ms"


def _named(transfer: Values, names: Sequence[str]) -> Any:
    value: Any = transfer
    for name in names:
        value = value[name]
    return value


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every congestion control with every loss rate; a point measures all distances."""
    chosen: list[Point] = []
    for congestion in CONGESTION:
        for loss in LOSSES:
            seconds = (QUICK_SECONDS if quick else SECONDS) if loss else LOSSLESS_SECONDS
            parameters = {"congestion": congestion, "loss": loss, "seconds": seconds}
            chosen.append(Point(f"{congestion} {loss:g} {seconds:g} s", parameters, seconds + STARTING_S, "place"))
    return chosen


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab with a packet capture, and yield the function that measures a point."""
    del group, say
    with CapturedPlace(DISTANCES) as place:
        yield lambda point: place.captured(**point.parameters)


def paths(records: Sequence[Record]) -> Iterator[Path]:
    """Yield the paths of the records; transfers that shared a slot of the switch's table with other transfers are left
    out."""
    for record in records:
        for distance in DISTANCES:
            mine = [
                transfer
                for transfer in record.result["transfers"]
                if transfer["client"] == distance.address and transfer["switch"]
            ]
            if mine:
                yield Path(record.parameters["congestion"], record.parameters["loss"], distance.delay_s, mine)


# -- the report


def _row(path: Path) -> list[str]:
    times = [f"{1e3 * path.mean_s(*names):.2f}" for names in (("rtt_s",), ("switch", "rtt_s"))]
    least = [f"{1e3 * path.mean_s(*names):.2f}" for names in (("least_rtt_s",), ("switch", "least_rtt_s"))]
    again = [f"{path.total(*names):,}" for names in (("again",), ("switch", "again"))]
    events = [f"{path.total(*names):,}" for names in (("captured", "events"), ("switch", "losses"))]
    share = f"{path.total('switch', 'losses') / path.total('switch', 'segments'):.3%}"
    segments = f"{path.total('switch', 'segments'):,}"
    place = [path.congestion, f"{path.loss:.1%}", f"{1e3 * path.delay_s:g}", str(len(path.transfers))]
    return [*place, *times, *least, segments, *again, *events, share]


HEADING = (
    *("congestion control", "loss", "away (ms)", "transfers", "mean round trip, kernel (ms)", "switch"),
    *(
        "least, kernel (ms)",
        "switch",
        "segments",
        "sent again, kernel",
        "switch",
        "loss events, capture",
        "switch",
        "p",
    ),
)


def _goal(text: str, values: Sequence[tuple[str, float, bool]]) -> Goal:
    """Return a goal over all paths; its result names the path with the largest deviation.

    `values` has name, relative deviation and success of each path.
    """
    if not values:
        return Goal(text, None, "not measured")
    worst = max(values, key=lambda entry: abs(entry[1]))
    missed = [name for name, _, holds in values if not holds]
    seen = f"worst {worst[1]:+.1%} ({worst[0]})"
    return Goal(text, not missed, f"{seen}; {len(values) - len(missed)} of {len(values)} paths")


def _times(records: Sequence[Record], name: str, *theirs: str) -> list[tuple[str, float, bool]]:
    both = [(path.name, path.mean_s("switch", name), path.mean_s(*(theirs or (name,)))) for path in paths(records)]
    return [(who, ours / kernel - 1, abs(ours - kernel) <= SHARE * kernel + SLACK_S) for who, ours, kernel in both]


def _counts(
    records: Sequence[Record], ours: Sequence[str], theirs: Sequence[str], least: int
) -> list[tuple[str, float, bool]]:
    both = [(path.name, path.total(*ours), path.total(*theirs)) for path in paths(records)]
    return [(who, here / there - 1, abs(here - there) <= SHARE * there) for who, here, there in both if there >= least]


def report(records: Sequence[Record]) -> Report:
    """Report a table of all paths, a table of timeouts and probes as the kernel and the switch counted them, and the
    goals."""
    again = _counts(records, ("switch", "again"), ("again",), 1)
    traced = _counts(records, ("switch", "again"), ("tcptrace", "again"), 1)
    events = _counts(records, ("switch", "losses"), ("captured", "events"), LEAST_EVENTS)
    cells = [
        (
            f"{record.parameters['congestion']}, {record.parameters['loss']:.1%}",
            *(str(record.result["kernel"][name]) for name in ("TCPTimeouts", "TCPLossProbes")),
            *(
                str(sum(each["switch"][name] for each in record.result["transfers"] if each["switch"]))
                for name in _OURS
            ),
        )
        for record in records
    ]
    goals = [
        _goal("mean round trip within 10 % + 0.2 ms of `tcpi_rtt`", _times(records, "rtt_s")),
        _goal("mean round trip within 10 % + 0.2 ms of tcptrace's", _times(records, "rtt_s", "tcptrace", "rtt_s")),
        _goal("least round trip within 10 % + 0.2 ms of `tcpi_min_rtt`", _times(records, "least_rtt_s")),
        _goal("segments sent again within 10 % of `tcpi_total_retrans`", again),
        _goal("segments sent again within 10 % of tcptrace's", traced),
        _goal(f"p within 10 % of a capture's, where there are {LEAST_EVENTS} loss events", events),
    ]
    shared = sum(transfer["switch"] is None for record in records for transfer in record.result["transfers"])
    timeouts = Table(["", "timeouts, kernel", "probes, kernel", "timeouts, switch", "probes, switch", "holes"], cells)
    return Report([Table(HEADING, [_row(path) for path in paths(records)]), timeouts], goals, {"not measured": shared})


_OURS = ("timeouts", "probes", "holes")


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the switch's round-trip times against the kernel's, and the switch's loss shares against the capture's."""
    times, shares = figure.subplots(1, 2)
    known_paths = list(paths(records))
    _scatter(
        times, known_paths, lambda path: 1e3 * path.mean_s("rtt_s"), lambda path: 1e3 * path.mean_s("switch", "rtt_s")
    )
    times.set(xlabel="mean round trip, kernel (ms)", ylabel="mean round trip, switch (ms)")
    lossy = [path for path in known_paths if path.total("captured", "events")]
    _scatter(
        shares,
        lossy,
        lambda path: path.total("captured", "events") / path.total("captured", "segments"),
        lambda path: path.total("switch", "losses") / path.total("switch", "segments"),
    )
    shares.set(xlabel="p, capture at the sender", ylabel="p, switch")


def _scatter(axes: Axes, all_paths: Sequence[Path], x: Callable[[Path], float], y: Callable[[Path], float]) -> None:
    for congestion, mark in MARKS.items():
        mine = [path for path in all_paths if path.congestion == congestion]
        axes.plot([x(path) for path in mine], [y(path) for path in mine], mark, fillstyle="none", label=congestion)
    if all_paths:
        ends = [min(map(x, all_paths)), max(map(x, all_paths))]
        axes.plot(ends, ends, "-", color="grey", linewidth=0.8, label="equal")
        axes.fill_between(ends, [0.9 * end for end in ends], [1.1 * end for end in ends], alpha=0.15, color="grey")
        axes.set(xscale="log", yscale="log")
        axes.legend()


EXPERIMENT = Experiment(
    name="sabt-measure",
    title="What the switch measures of transfers, against TCP itself",
    source="Matsuo et al., section 2.2; Azuma et al., section 2.1: what their servers' kernels know",
    about=(
        "Transfers of at most 600 KB/s pass the switch to clients at 1 to 300 ms, which lose segments at random. What"
        " the switch has of them is held against the sender's TCP_INFO and a capture beside it."
    ),
    points=points,
    report=report,
    draw=draw,
    place=place,
    needs_root=True,
)
