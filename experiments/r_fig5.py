"""Fig. 5 of Ohta & Andou: connect and transfer times against request rate for three servers, one of which is loaded;
also for current alternatives to sluice."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import BY_CHANCE, Mean, by_chance, chance, mean_of
from experiments.records import matching
from experiments.variants import (
    ALTERNATIVES,
    EQUAL,
    IPTABLES,
    PAPER,
    PRODUCTION,
    ROUND_ROBIN,
    VARIANTS,
    WITHOUT,
    Variant,
)
from experiments.webpool import pool
from topo.measure.httperf import Load
from topo.plan.network import SERVER_NAMES, THREE

LOADED = SERVER_NAMES[-1]
RATES_PER_S = (30.0, 60.0, 90.0, 120.0, 160.0)
QUICK_RATES_PER_S = (120.0,)
QUICK = tuple(name for name in VARIANTS if name not in (WITHOUT.name, ROUND_ROBIN.name))
"""Names of the variants of the quick form: all except WITHOUT and ROUND_ROBIN, the proxy that ignores open
connections."""
REPETITIONS = 3
LOAD_S = 40.0
QUICK_LOAD_S = 15.0
GIVEN_UP_S = 5.0
HURTS_MS = 100.0
SHARE_OF_EQUAL = 0.25
NO_LOSS_MS = 1.0
"""A connect time below this many ms means that no SYN was lost: a client repeats a lost SYN only after 1,000 ms."""
MEDIAN_DIGITS = 2
"""Digits of a median in ms: medians are one or two milliseconds, because half of the requests do not have to wait."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every variant (in the quick form those of QUICK) at every rate. Repetitions are
    interleaved, so that a slow change of the machine's speed affects all variants alike."""
    rates, seconds = (QUICK_RATES_PER_S, QUICK_LOAD_S) if quick else (RATES_PER_S, LOAD_S)
    return [
        Point(
            key=key_of(name, rate, seconds, number),
            parameters={"variant": name, "rate_per_s": rate, "seconds": seconds, "loaded": LOADED},
            seconds=seconds + 14,
            group=f"{name} {rate:g} {number}",
            lab_run=f"r-fig5/{key_of(name, rate, seconds, number)}",
        )
        for number in range(1 if quick else REPETITIONS)
        for rate in rates
        for name in (QUICK if quick else VARIANTS)
    ]


def key_of(name: str, rate_per_s: float, seconds: float, number: int) -> str:
    """Return the key (permanent name) of a run."""
    return f"{name} {rate_per_s:g}/s {seconds:g} s #{number}"


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a new lab with one loaded server, and yield the measuring function. The lab is new so that no ratios and
    queues remain from earlier runs."""
    with pool(VARIANTS[group.split(maxsplit=1)[0]].open(say, THREE)) as web_pool:
        web_pool.lab.break_server(LOADED)

        def measure(point: Point) -> Values:
            return web_pool.run(Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S))

        yield measure


def figure_of(records: Sequence[Record], name: str, rate: float, kind: str, figure: str) -> Mean:
    """Return the mean over runs of `figure` (`mean_ms`, `median_ms` or `p99_ms`) of the connect or transfer times
    (`kind`) for a variant and a rate."""
    runs = matching(records, variant=name, rate_per_s=rate)
    return mean_of([record.result[kind][figure] for record in runs])


def _known(records: Sequence[Record]) -> list[Variant]:
    """Return the variants that were run."""
    names = {record.parameters["variant"] for record in records}
    return [variant for variant in VARIANTS.values() if variant.name in names]


def _table(records: Sequence[Record], kind: str, figure: str, what: str, digits: int = 0) -> Table:
    rates = sorted({record.parameters["rate_per_s"] for record in records})
    shown = [variant for variant in _known(records) if kind == "transfer" or not variant.proxy]
    rows = [
        [variant.title, *(figure_of(records, variant.name, rate, kind, figure).text(digits) for rate in rates)]
        for variant in shown
    ]
    return Table([what, *(f"{rate:g}/s" for rate in rates)], rows)


def _shares(records: Sequence[Record], above_ms: float = 0.0) -> dict[float, float]:
    """Return the ratio of paper mode's mean connect time to the equal split's, by rate, for the rates at which the
    equal split's mean is above `above_ms`."""
    shares: dict[float, float] = {}
    for rate in sorted({record.parameters["rate_per_s"] for record in records}):
        equal, paper = (figure_of(records, name, rate, "connect", "mean_ms").value for name in (EQUAL.name, PAPER.name))
        if equal > above_ms and not math.isnan(paper):
            shares[rate] = paper / equal
    return shares


def _quarter(records: Sequence[Record]) -> Goal:
    shares = _shares(records, HURTS_MS)
    seen = ", ".join(f"{share:.0%} at {rate:g}/s" for rate, share in shares.items())
    return Goal(
        "paper mode at most a quarter of equal split in mean connect time, wherever that exceeds 100 ms",
        all(share <= SHARE_OF_EQUAL for share in shares.values()) if shares else None,
        seen or "an equal split hurts nowhere",
    )


def _at_or_below(records: Sequence[Record], kind: str, figure: str) -> Goal:
    """Return the goal that production mode's mean or p99 is at or below that of each alternative. Connect times are
    compared only with iptables, because a proxy completes the client's handshake itself."""
    what = figure.removesuffix("_ms")
    text = {
        "connect": f"production mode at or below {IPTABLES.title}, {what} of the connect time",
        "transfer": f"production mode at or below every alternative, {what} of the whole transfer",
    }
    rates = sorted({record.parameters["rate_per_s"] for record in records})
    misses: list[str] = []
    close: dict[str, list[str]] = {}
    is_labelled = False
    for rate in rates:
        ours = figure_of(records, PRODUCTION.name, rate, kind, figure)
        for other in ALTERNATIVES if kind == "transfer" else (IPTABLES,):
            theirs = figure_of(records, other.name, rate, kind, figure)
            if math.isnan(ours.value) or math.isnan(theirs.value):
                continue
            is_labelled = True
            digits = 2 if max(ours.value, theirs.value) < NO_LOSS_MS else 1
            versus = f"{rate:g}/s: {ours.text(digits)} ms against {theirs.text(digits)} ms of {other.title}"
            if ours.value > theirs.value:
                misses.append(versus + chance(ours, theirs))
            elif by_chance(ours, theirs):
                close.setdefault(other.title, []).append(f"{rate:g}/s")
    return Goal(
        text[kind],
        not misses if is_labelled else None,
        "; ".join(misses) or (_everywhere(close) if is_labelled else "-"),
    )


def _everywhere(close: Mapping[str, Sequence[str]]) -> str:
    """Return a text for a goal that is reached at every rate. The text lists alternatives and rates at which the
    difference is not significant."""
    whom = "; ".join(f"{title} at {', '.join(rates)}" for title, rates in close.items())
    return "everywhere" + (f"{BY_CHANCE} from {whom}" if close else "")


def report(records: Sequence[Record]) -> Report:
    """Report tables of mean, p99 and median of the times, and the goals."""
    return Report(
        tables=[
            _table(records, "connect", "mean_ms", "connect time, mean (ms)"),
            _table(records, "connect", "p99_ms", "connect time, p99 (ms)"),
            _table(records, "transfer", "mean_ms", "whole transfer, mean (ms)"),
            _table(records, "transfer", "p99_ms", "whole transfer, p99 (ms)"),
            _table(records, "transfer", "median_ms", "whole transfer, median (ms)", MEDIAN_DIGITS),
        ],
        goals=[
            _quarter(records),
            *(
                _at_or_below(records, kind, figure)
                for kind in ("transfer", "connect")
                for figure in ("mean_ms", "p99_ms")
            ),
        ],
        summary={
            "runs": [
                {**record.parameters, **{kind: record.result[kind] for kind in ("connect", "transfer")}}
                for record in records
            ]
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the mean connect time, and mean and p99 of the transfer time, against the request rate."""
    plots = (
        ("connect", "mean_ms", "connect, mean"),
        ("transfer", "mean_ms", "transfer, mean"),
        ("transfer", "p99_ms", "transfer, p99"),
    )
    rates = sorted({record.parameters["rate_per_s"] for record in records})
    for axes, (kind, what, title) in zip(figure.subplots(1, 3), plots, strict=True):
        for variant in _known(records):
            if kind == "connect" and variant.proxy:
                continue
            means = [figure_of(records, variant.name, rate, kind, what) for rate in rates]
            bars = [0.0 if math.isnan(mean.half) else mean.half for mean in means]
            style = "--" if variant.proxy else "-"
            axes.errorbar(rates, [mean.value for mean in means], yerr=bars, fmt=f"o{style}", label=variant.title, ms=3)
        axes.set_yscale("log")
        axes.set_xlabel("requests per s")
        axes.set_title(f"{title} (ms)", fontsize="medium")
        axes.grid(alpha=0.3)
    figure.legend(*figure.axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="x-small")


EXPERIMENT = Experiment(
    name="r-fig5",
    title="Connect and transfer times: equal split, R, and today's alternatives",
    source="Ohta & Andou, Fig. 5",
    about="Three Apache servers with a tenth of a CPU each, one sharing it with `stress`; the alternatives "
    "stand in the switch's place. What takes over 5 s counts as 5 s; settling is part of each run.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
