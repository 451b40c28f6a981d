"""The control run: the same client and server over a direct link, over a kernel router, and over the switch, to
determine the switch's part of connect and transfer times."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from experiments.direct import ONE, DirectLab, RoutedLab
from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table
from experiments.intervals import Mean, mean_of
from experiments.records import matching
from experiments.webpool import pool, quiet
from topo.labs.web import Lab
from topo.measure.httperf import Load
from topo.plan.network import Balance
from topo.testbed.nodes import switch_kind

RATES_PER_S = (30.0, 60.0, 120.0)
QUICK_RATES_PER_S = (60.0,)
REPETITIONS = 3
LOAD_S, QUICK_LOAD_S = 40.0, 15.0
GIVEN_UP_S = 5.0
DIRECT, ROUTED, SWITCH = "a link between client and server", "the kernel routes", "this switch"


def _switch(say: Say) -> Lab:
    return Lab(switch_kind(), Balance("fixed", 1.0, 10.0), say=say, pool=ONE)


WAYS: Mapping[str, Callable[[Say], Lab]] = {DIRECT: DirectLab, ROUTED: RoutedLab, SWITCH: _switch}


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every path between client and server at every rate. Repetitions are interleaved, so
    that a slow change of the machine's speed affects all paths and rates alike."""
    rates, seconds = (QUICK_RATES_PER_S, QUICK_LOAD_S) if quick else (RATES_PER_S, LOAD_S)
    return [
        Point(
            key=f"{path} {rate:g}/s {seconds:g} s #{number}",
            parameters={"path": path, "rate_per_s": rate, "seconds": seconds},
            seconds=seconds + 8,
            group=f"{path}/{number}",
        )
        for number in range(1 if quick else REPETITIONS)
        for path in WAYS
        for rate in rates
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a lab with the path between client and server that `group` names, and yield the measuring function."""
    with pool(WAYS[group.split("/", maxsplit=1)[0]](quiet(say))) as web_pool:
        yield lambda point: web_pool.run(Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S))


def figure_of(records: Sequence[Record], path: str, rate: float, kind: str, figure: str) -> Mean:
    """Return the mean over runs of `figure` (`mean_ms`, `median_ms` or `p99_ms`) of the connect or transfer times
    (`kind`) for a path and a rate."""
    return mean_of([record.result[kind][figure] for record in matching(records, path=path, rate_per_s=rate)])


def answered_per_s(record: Record) -> float:
    """Return the replies per second that httperf received during the load."""
    return record.result["httperf"]["replies"] / record.result["httperf"]["duration_s"]


def _rates(records: Sequence[Record]) -> list[float]:
    return sorted({record.parameters["rate_per_s"] for record in records})


def _row(runs: Sequence[Record], path: str, rate: float) -> list[str]:
    lost = sum(record.result["transfer"]["given_up"] for record in runs)
    cells = [
        figure_of(runs, path, rate, kind, figure).text(2)
        for kind in ("connect", "transfer")
        for figure in ("median_ms", "mean_ms", "p99_ms")
    ]
    return [path, f"{rate:g}", mean_of([answered_per_s(record) for record in runs]).text(1), *cells, str(lost)]


def _answers(records: Sequence[Record]) -> Goal:
    transfers = [record.result["transfer"] for record in matching(records, path=SWITCH)]
    lost, begun = (sum(transfer[count] for transfer in transfers) for count in ("given_up", "begun"))
    return Goal(
        "through the switch every request is answered", lost == 0 if begun else None, f"{begun - lost} of {begun}"
    )


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each path between client and server, and each rate."""
    heading = ["between client and server", "requests/s", "answered/s"]
    heading += [f"{kind}, {figure} (ms)" for kind in ("connect", "transfer") for figure in ("median", "mean", "p99")]
    rows = [
        _row(runs, path, rate)
        for path in WAYS
        for rate in _rates(records)
        if (runs := matching(records, path=path, rate_per_s=rate))
    ]
    return Report(
        tables=[Table([*heading, "given up"], rows)],
        goals=[_answers(records)],
        summary={
            record.key: {kind: record.result[kind] for kind in ("connect", "transfer", "httperf")} for record in records
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw median and p99 of the connect time against the rate."""
    rates = _rates(records)
    for axes, what in zip(figure.subplots(1, 2), ("median_ms", "p99_ms"), strict=True):
        for path in WAYS:
            means = {rate: figure_of(records, path, rate, "connect", what) for rate in rates}
            known = {rate: mean.value for rate, mean in means.items() if mean.runs}
            axes.plot(list(known), list(known.values()), "o-", label=path)
        axes.set_xlabel("requests per s")
        axes.set_ylabel(f"connect time, {what.removesuffix('_ms')} (ms)")
        axes.set_ylim(0, None)
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize="small")


EXPERIMENT = Experiment(
    name="r-control",
    title="Without the switch",
    source="Control run",
    about="One Apache server and the client, joined by a link, by the kernel as a router, and by the switch.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
