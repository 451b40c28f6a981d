"""Fig. 5 of paper 000: times against request rate, three servers, one of them loaded; today's alternatives."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import BY_CHANCE, Mean, by_chance, chance, mean_of
from experiments.ratios import course
from experiments.repetitions import how_often, set_up
from experiments.simulated import grouped
from experiments.switchload import load_sentence, switch_sentence
from experiments.variants import (
    ALTERNATIVES,
    EQUAL,
    IPTABLES,
    PAPER,
    PERIOD_S,
    PRODUCTION,
    ROUND_ROBIN,
    VARIANTS,
    WINDOW_S,
    WITHOUT,
    Variant,
)
from experiments.webpool import limit_clause, pool, total
from workload.load import Load
from workload.plan import SERVER_NAMES, THREE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOADED = SERVER_NAMES[-1]
RATES_PER_S = (30.0, 60.0, 90.0, 120.0, 160.0)
QUICK_RATES_PER_S = (120.0,)
QUICK = tuple(one for one in VARIANTS if one not in (WITHOUT.name, ROUND_ROBIN.name))
"""Without what is between two that are there, and the proxy that looks at no connections."""
REPETITIONS = 3
LOAD_S = 40.0
QUICK_LOAD_S = 15.0
GIVEN_UP_S = 5.0
HURTS_MS = 100.0
SHARE_OF_EQUAL = 0.25
SOONER = 0.5
"""Of an equal split's connect time: from here on another one's is said to be shorter."""
HUNDREDTH = 0.01
NO_LOSS_MS = 1.0
"""A connect time below is a handshake's; the first repeated SYN comes after 1,000 ms."""
MEDIAN_DIGITS = 2
"""A median is a millisecond or two: half of the requests meet nobody."""


def points(quick: bool) -> Sequence[Point]:
    """Every way to balance at every rate; repetitions go round: all meet the same moods of the machine."""
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
    """Return the key of a run."""
    return f"{name} {rate_per_s:g}/s {seconds:g} s #{number}"


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a fresh lab with one loaded server: ratios and queues begin anew."""
    with pool(VARIANTS[group.split(maxsplit=1)[0]].open(say, THREE)) as one:
        one.lab.break_server(LOADED)

        def measure(point: Point) -> Values:
            return one.run(Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S))

        yield measure


def figure_of(records: Sequence[Record], name: str, rate: float, kind: str, figure: str) -> Mean:
    """Return a figure (`mean_ms`, `p99_ms`) of the connect or transfer times of a variant at a rate."""
    return mean_of(
        [
            one.result[kind][figure]
            for one in records
            if one.parameters["variant"] == name and one.parameters["rate_per_s"] == rate
        ]
    )


def _known(records: Sequence[Record]) -> list[Variant]:
    """Return the ways to balance that were run."""
    names = {one.parameters["variant"] for one in records}
    return [one for one in VARIANTS.values() if one.name in names]


def _table(records: Sequence[Record], kind: str, figure: str, what: str, digits: int = 0) -> Table:
    rates = sorted({one.parameters["rate_per_s"] for one in records})
    shown = [one for one in _known(records) if kind == "transfer" or not one.proxy]
    rows = [
        [one.title, *(figure_of(records, one.name, rate, kind, figure).text(digits) for rate in rates)] for one in shown
    ]
    return Table([what, *(f"{rate:g}/s" for rate in rates)], rows)


def _shares(records: Sequence[Record], above_ms: float = 0.0) -> dict[float, float]:
    """Paper mode's mean connect time in parts of an equal split's, by rate, where that is above a time."""
    shares: dict[float, float] = {}
    for rate in sorted({one.parameters["rate_per_s"] for one in records}):
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
    """Hold production mode's mean or p99 against the alternatives': of connecting, only against who is no proxy."""
    what = figure.removesuffix("_ms")
    text = {
        "connect": f"production mode at or below {IPTABLES.title}, {what} of the connect time",
        "transfer": f"production mode at or below every alternative, {what} of the whole transfer",
    }
    rates = sorted({one.parameters["rate_per_s"] for one in records})
    misses: list[str] = []
    close: dict[str, list[str]] = {}
    told = False
    for rate in rates:
        ours = figure_of(records, PRODUCTION.name, rate, kind, figure)
        for other in ALTERNATIVES if kind == "transfer" else (IPTABLES,):
            theirs = figure_of(records, other.name, rate, kind, figure)
            if math.isnan(ours.value) or math.isnan(theirs.value):
                continue
            told = True
            digits = 2 if max(ours.value, theirs.value) < NO_LOSS_MS else 1
            versus = f"{rate:g}/s: {ours.text(digits)} ms against {theirs.text(digits)} ms of {other.title}"
            if ours.value > theirs.value:
                misses.append(versus + chance(ours, theirs))
            elif by_chance(ours, theirs):
                close.setdefault(other.title, []).append(f"{rate:g}/s")
    return Goal(
        text[kind],
        not misses if told else None,
        "; ".join(misses) or (_everywhere(close) if told else "-"),
    )


def _everywhere(close: Mapping[str, Sequence[str]]) -> str:
    """Say so, and at which rates the means of whom are no further apart than chance."""
    whom = "; ".join(f"{title} at {', '.join(rates)}" for title, rates in close.items())
    return "everywhere" + (f"{BY_CHANCE} from {whom}" if close else "")


def _paper(records: Sequence[Record]) -> str:
    """Say what the paper's figure shows and whether it is so here; where the quarter is missed, what settling cost."""
    shares = _shares(records)
    if not shares:
        return ""
    below = sum(share < 1 for share in shares.values())
    said = [
        "The paper's Fig. 5 has the connect time shorter by its method than by an equal split (means of 15 "
        "measurements a rate; the text gives no numbers, so the quarter is this project's own goal). Here paper mode "
        f"is below equal split at {below} of {len(shares)} rates."
    ]
    for rate, share in _shares(records, HURTS_MS).items():
        if share > SHARE_OF_EQUAL and (settling := _settling(records, rate)):
            said.append(settling)
    return " ".join(said)


def _same_split(records: Sequence[Record]) -> str:
    """Say so where the kernel, which splits equally too, connects much sooner than an equal split by this switch."""
    said: list[str] = []
    for rate in _shares(records, HURTS_MS):
        ours, paper, kernels = (
            figure_of(records, one.name, rate, "connect", "mean_ms") for one in (EQUAL, PAPER, IPTABLES)
        )
        if kernels.value < SOONER * ours.value:
            said.append(
                f"at {rate:g}/s in {kernels.text(0)} ms and not in {ours.text(0)} (of the kernel's, paper mode has "
                f"{paper.value / kernels.value:.0%})"
            )
    if not said:
        return ""
    return (
        f"The kernel's DNAT splits as equally, and connects {', '.join(said)}. A loaded server answers more pages the "
        "sooner its clients close: the kernel brings it their FIN at once, and a switch in user space or a proxy has "
        "to be woken for it ([lab](guide/lab.md) has the times). All of sluice's modes are behind that switch."
    )


def _settled(records: Sequence[Record], name: str, rate: float) -> tuple[Mean, float] | None:
    """Return how many seconds the loaded server's ratio took to settle, and how many a run has; None without ratios."""
    runs = [
        one
        for one in records
        if (one.parameters["variant"], one.parameters["rate_per_s"]) == (name, rate) and one.result.get("ratios")
    ]
    if not runs:
        return None
    seconds = runs[0].parameters["seconds"]
    loaded = [[row for row in one.result["ratios"] if row[0] <= seconds] for one in runs]
    settled = [min(seconds, course([row[0] for row in rows], [row[-1] for row in rows]).settled_s) for rows in loaded]
    return mean_of(settled), seconds


def _settling(records: Sequence[Record], rate: float) -> str:
    """Say how much of paper mode's runs at a rate the loaded server's ratio took to settle."""
    known = _settled(records, PAPER.name, rate)
    if known is None:
        return ""
    took, seconds = known
    share = took.value / seconds
    whose = "most of what is measured there is settling" if share > 0.5 else "settling is the lesser part of it"
    return (
        f"At {rate:g}/s it misses the quarter; the loaded server's ratio took {took.text(0)} of {seconds:g} s to "
        f"settle ({share:.0%} of the run): {whose}."
    )


def _production(records: Sequence[Record]) -> str:
    """Say what the loaded server still gets in production mode, and how far apart the medians are."""
    rates = sorted({one.parameters["rate_per_s"] for one in records})
    medians = [figure_of(records, PRODUCTION.name, rate, "transfer", "median_ms").value for rate in rates]
    theirs = [_best(records, rate, "median_ms") for rate in rates]
    shares = [
        one.result["servers"][LOADED]["syn"] / total(one.result["servers"], "syn")
        for one in records
        if one.parameters["variant"] == PRODUCTION.name
    ]
    if not shares or any(one is None for one in theirs):
        return ""
    best = [one[1].value for one in theirs if one is not None]
    same = [figure_of(records, EQUAL.name, rate, "transfer", "median_ms").value for rate in rates]
    apart = max(abs(ours - other) for ours, other in zip(medians, best, strict=True))
    p99 = (
        "more than one in a hundred, so that the p99 may be one of its answers"
        if max(shares) > HUNDREDTH
        else "at most one in a hundred: the p99 is not made by it alone"
    )
    return (
        f"In production mode the loaded server got {min(shares):.1%} to {max(shares):.1%} of the SYNs ({p99}). The "
        f"median is {_medians(medians)} ms at the rates of the tables, that of the best alternative {_medians(best)} "
        f"ms, of an equal split through the same switch {_medians(same)} ms. How long a packet waits for a core in a "
        "switch in user space depends on what else the machine does: means that are no further apart than the medians "
        f"({_medians([apart])} ms at most) do not tell one way to balance from another."
    )


def _medians(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.{MEDIAN_DIGITS}f}" for value in values)


def _best(records: Sequence[Record], rate: float, figure: str) -> tuple[Variant, Mean] | None:
    """Return the alternative with the least of a figure of the whole transfer at a rate; None without any."""
    means = [(one, figure_of(records, one.name, rate, "transfer", figure)) for one in ALTERNATIVES]
    return min(((one, mean) for one, mean in means if mean.runs), key=lambda one: one[1].value, default=None)


def _behind(records: Sequence[Record]) -> str:
    """Say, where production mode's mean is above the best alternative's, what of it all requests have in common."""
    said: list[str] = []
    for rate in sorted({one.parameters["rate_per_s"] for one in records}):
        ours, median = (
            figure_of(records, PRODUCTION.name, rate, "transfer", figure) for figure in ("mean_ms", "median_ms")
        )
        best = _best(records, rate, "mean_ms")
        if best is None or not ours.value > best[1].value:
            continue
        title, behind = best[0].title, ours.value - best[1].value
        common = median.value - figure_of(records, best[0].name, rate, "transfer", "median_ms").value
        whose = "the usual request" if common > behind / 2 else "the slowest requests"
        known = _settled(records, PRODUCTION.name, rate)
        settled = (
            ""
            if known is None
            else f", and the loaded server's ratio took {known[0].text(0)} of {known[1]:g} s to settle"
        )
        said.append(
            f"At {rate:g}/s production mode's mean is {behind:.1f} ms above that of {title}, the median "
            f"{_medians([common])} ms: most of it is in {whose}{settled}."
        )
    return " ".join(said)


def _ways(records: Sequence[Record]) -> str:
    """Say so where production mode's p99 of the connect time is above the kernel's, and no SYN is lost by either."""
    rates: list[str] = []
    for rate in sorted({one.parameters["rate_per_s"] for one in records}):
        ours, theirs = (figure_of(records, one.name, rate, "connect", "p99_ms") for one in (PRODUCTION, IPTABLES))
        if theirs.value < ours.value < NO_LOSS_MS:
            rates.append(f"{rate:g}/s")
    if not rates:
        return ""
    return (
        f"At {', '.join(rates)} neither production mode nor the kernel has SYNs lost in a hundredth of the "
        "connections; what is compared there is the way: SYN and SYN-ACK each wait for a switch in user space to be "
        "woken, and the kernel forwards them as soon as they are sent."
    )


def report(records: Sequence[Record]) -> Report:
    """Tables of mean, p99 and median, and the goals."""
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
        text=[
            f"{how_often(grouped(records, set_up).values())}; {limit_clause(records, GIVEN_UP_S)}. "
            f"T = {PERIOD_S:g} s, window {WINDOW_S:g} s, Delta = 0.1, from equal ratios on: the first seconds, while R "
            "settles, are part of every run. A proxy answers the handshake itself, so proxies are held against whole "
            "transfers, and the kernel's DNAT against both.",
            _paper(records),
            _production(records),
            _behind(records),
            _ways(records),
            _same_split(records),
            f"{switch_sentence(records)} {load_sentence(records)}",
        ],
        summary={
            "runs": [
                {**one.parameters, **{kind: one.result[kind] for kind in ("connect", "transfer")}} for one in records
            ]
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Mean connect time, mean and p99 of the transfers, against the rate."""
    plots = (
        ("connect", "mean_ms", "connect, mean"),
        ("transfer", "mean_ms", "transfer, mean"),
        ("transfer", "p99_ms", "transfer, p99"),
    )
    rates = sorted({one.parameters["rate_per_s"] for one in records})
    for axes, (kind, what, title) in zip(figure.subplots(1, 3), plots, strict=True):
        for one in _known(records):
            if kind == "connect" and one.proxy:
                continue
            means = [figure_of(records, one.name, rate, kind, what) for rate in rates]
            bars = [0.0 if math.isnan(mean.half) else mean.half for mean in means]
            style = "--" if one.proxy else "-"
            axes.errorbar(rates, [mean.value for mean in means], yerr=bars, fmt=f"o{style}", label=one.title, ms=3)
        axes.set_yscale("log")
        axes.set_xlabel("requests per s")
        axes.set_title(f"{title} (ms)", fontsize="medium")
        axes.grid(alpha=0.3)
    figure.legend(*figure.axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="x-small")


EXPERIMENT = Experiment(
    name="r-fig5",
    title="Connect and transfer times: equal split, R, and today's alternatives",
    source="Paper 000, Fig. 5",
    about="Three Apache servers with a tenth of a CPU each, one of which shares it with `stress`; 100,000-byte files, "
    "httperf with exponential intervals. The alternatives stand in the switch's place, in the same namespace, and "
    "proxies have its priority (real-time, before all servers); the kernel routes.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
