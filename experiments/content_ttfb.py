"""Time to the first byte and CPU time of a request: agents, plain service, HAProxy and nginx behind one switch."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from experiments.contentload import Requests
from experiments.contentplace import (
    AGENT,
    CHAIN,
    CLIENT,
    DIRECT,
    FIRST,
    HIT,
    KILO,
    LAST,
    LOCATION,
    MAP,
    MEGA,
    MISS,
    PLAIN,
    RULES,
    SERIES,
    ContentPlace,
    Series,
)
from experiments.experiment import Axes, Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.findings import Finding, shape
from experiments.findings import table as shapes_table
from experiments.intervals import Mean, difference, mean_of, surely_above
from experiments.records import by_number, matching

MEASURED = (PLAIN, AGENT, HIT, MISS, CLIENT, CHAIN, MAP, LOCATION)
"""Series that are measured with GET requests for pages."""
POSTED = (DIRECT, PLAIN, AGENT, HIT, MISS)
"""Series that are measured with posted documents, as in LCS's Figures 6b and 7."""
COMPARED = (AGENT, HIT)
"""Series whose times for posted documents are compared with each other."""

LOAD = 0.3
"""Request rate as a share of the highest rate that HAProxy's chain of rules reaches in the same lab."""
CAPACITY_S = 3.0
SECONDS, QUICK_SECONDS = 20.0, 10.0
REPETITIONS = 3
COMPARED_ROUNDS = 4
"""Rounds of the series in COMPARED within the single lab of a quick run. One round would not suffice, because medians
of few posts scatter."""
DOCUMENTS = (1_000, 10_000, 100_000, 1_000_000)
POST_SECONDS = 4.0
POST_RATE_PER_S, POST_BYTES_PER_S = 40.0, 5e6
"""Largest rates of posts, in posts and in bytes per second. The limit of bytes makes posts of large documents rarer, so
that no two posts overlap in time."""
BOUND, DOCUMENT = "bound by the path", "bound by the document"
"""Which rule selects the server for a posted document: a rule on the path, which reads nothing of the document, or a
rule on the document's last element."""
P50_TIMES, P99_TIMES = 1.3, 1.5
EQUAL_TIMES = 1.1
"""Two medians count as equal if they differ by at most this factor, as medians of one series do from run to run."""
HALF, TENTH = 0.5, 0.1
FLAT_TIMES = 2.0
"""A time that grows at most by this factor over all document sizes counts as constant; of two times, the longer counts
as little longer if it is at most this factor times the other."""
SENT = "sending it is part of it"


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: all series in turn in one lab; each repetition opens a new lab."""
    seconds = QUICK_SECONDS if quick else SECONDS
    rounds = [(number, number, (*_pages(seconds), *_posts())) for number in range(1 if quick else REPETITIONS)]
    if quick:
        rounds += [(number, 0, _compared()) for number in range(1, COMPARED_ROUNDS)]
    return [
        Point(f"{key} #{number}", parameters, parameters["seconds"] + 1.3, f"place {where}")
        for number, where, listed in rounds
        for key, parameters in listed
    ]


def _compared() -> tuple[tuple[str, dict[str, Any]], ...]:
    names = {series.name for series in COMPARED}
    return tuple(post for post in _posts() if post[1]["series"] in names and post[1]["by"] == DOCUMENT)


def _pages(seconds: float) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{series.name} {page} {seconds:g} s", {"series": series.name, "page": page, "load": LOAD, "seconds": seconds})
        for page in (KILO, MEGA)
        for series in MEASURED
    ]


def _posts() -> list[tuple[str, dict[str, Any]]]:
    return [
        (
            f"{series.name} document of {size:,} bytes, {by}",
            {"series": series.name, "document": size, "by": by, "rate_per_s": _rate(size), "seconds": POST_SECONDS},
        )
        for size in DOCUMENTS
        for series in POSTED
        for by in ((BOUND, DOCUMENT) if series.process else (DOCUMENT,))
    ]


def _rate(size: int) -> float:
    return min(POST_RATE_PER_S, POST_BYTES_PER_S / size)


def paths(series: Series, page: str, by: str = BOUND) -> list[str]:
    """Return the paths that a series requests in turn. The series of misses (the guessed server was wrong) needs two
    groups without a common server."""
    last = f"/{page}" if by == DOCUMENT else LAST.replace(KILO, page)
    return [FIRST.replace(KILO, page), last] if series is MISS else [last]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab with all agents and rival proxies."""
    del group
    with ContentPlace(RULES, say) as place:
        yield lambda point: _measure(place, point.parameters)


def _measure(place: ContentPlace, asked: Values) -> Values:
    series = SERIES[asked["series"]]
    if size := asked.get("document"):
        listed = paths(series, KILO, asked["by"])
        return place.run(series, Requests(listed, asked["rate_per_s"], asked["seconds"], size))
    listed = paths(series, asked["page"])
    rate = round(asked["load"] * place.per_second(CHAIN, paths(CHAIN, asked["page"])[0], CAPACITY_S), 1)
    return {**place.run(series, Requests(listed, rate, asked["seconds"])), "rate_per_s": rate}


# -- the report


def _of(records: Sequence[Record], series: Series, **wanted: Any) -> list[Record]:
    return matching(records, series=series.name, **wanted)


def first_ms(records: Sequence[Record], series: Series, figure: str = "p50_ms", **wanted: Any) -> Mean:
    """Return the mean over runs of one figure (such as the median) of the times to the first byte."""
    return mean_of([record.result["first"][figure] for record in _of(records, series, **wanted)])


def cpu_us(records: Sequence[Record], series: Series, page: str, *, switch: bool = False) -> Mean:
    """Return the mean CPU time of a request in microseconds, in the agent or proxy; with ``switch``, the time in the
    switch is added."""
    runs = _of(records, series, page=page)
    return mean_of(
        [sum(us for who, us in record.result["cpu_us"].items() if switch or who != "switch") for record in runs]
    )


def _known(records: Sequence[Record], key: str) -> list[Series]:
    names = {record.parameters["series"] for record in records if key in record.parameters}
    return [series for series in SERIES.values() if series.name in names]


def _pages_table(records: Sequence[Record], page: str) -> Table:
    rows: list[list[str]] = []
    for series in _known(records, "page"):
        runs = _of(records, series, page=page)
        times = [first_ms(records, series, figure, page=page).text(2) for figure in ("p50_ms", "p99_ms")]
        whole = mean_of([run.result["whole"]["p50_ms"] for run in runs]).text(2)
        own, both = (cpu_us(records, series, page, switch=switch).text(0) for switch in (False, True))
        rate = mean_of([run.result["rate_per_s"] for run in runs]).text(0)
        rows.append([series.title, rate, *times, whole, own if series.process else "-", both])
    size = {KILO: "1 KB", MEGA: "1 MB"}[page]
    heading = ["requests/s", "first byte, p50 (ms)", "p99", "last byte, p50 (ms)", "its CPU (us)"]
    return Table([f"pages of {size}", *heading, "with the switch's (us)"], rows)


def _posts_table(records: Sequence[Record]) -> Table:
    rows: list[list[str]] = []
    for series in _known(records, "document"):
        for by in (BOUND, DOCUMENT):
            means = [first_ms(records, series, document=size, by=by) for size in DOCUMENTS]
            if any(mean.runs for mean in means):
                rows.append([_titled(series, by), *(mean.text(2) for mean in means)])
    return Table(["first byte, p50 (ms), of", *(f"{size:,} bytes" for size in DOCUMENTS)], rows)


def _titled(series: Series, by: str) -> str:
    return f"{series.title}, {by.removeprefix('bound ')}" if series.process else series.title


def _by_size(records: Sequence[Record], series: Series, by: str) -> tuple[list[int], list[Mean]]:
    sizes = [size for size in DOCUMENTS if _of(records, series, document=size, by=by)]
    return sizes, [first_ms(records, series, document=size, by=by) for size in sizes]


def _times(text: str, ours: Mean, theirs: Mean, most: float) -> Goal:
    """Require that the time `ours` is at most `most` times the time `theirs`, both in ms."""
    return _at_most(text, ours, theirs, most, lambda mean: f"{mean.text(2)} ms")


def _at_most(text: str, ours: Mean, theirs: Mean, most: float, show: Callable[[Mean], str]) -> Goal:
    if math.isnan(ours.value) or math.isnan(theirs.value):
        return Goal(text, None, "not measured")
    share = ours.value / theirs.value
    return Goal(text, share <= most, f"{share:.2f} times: {show(ours)} against {show(theirs)}")


def _first_bytes(records: Sequence[Record]) -> list[Goal]:
    def figure(series: Series, what: str) -> Mean:
        return first_ms(records, series, f"{what}_ms", page=KILO)

    goals = [
        _times(f"agent pass, {what}: at most {most} times HAProxy's", figure(AGENT, what), figure(CHAIN, what), most)
        for what, most in (("p50", P50_TIMES), ("p99", P99_TIMES))
    ]
    goals += [
        _times(f"{series.title}, {what}: at or below HAProxy's", figure(series, what), figure(CHAIN, what), 1.0)
        for series in (CLIENT, HIT)
        for what in ("p50", "p99")
    ]
    equal = f"`sticky: client`, p50: plain service's, within {EQUAL_TIMES - 1:.0%}"
    return [*goals, _times(equal, figure(CLIENT, "p50"), figure(PLAIN, "p50"), EQUAL_TIMES), _hits(records)]


def _hits(records: Sequence[Record]) -> Goal:
    """Require for every document size that a hit (the pre-allocated server was right) does not take significantly
    longer than the series AGENT takes, compared over pairs of runs of the same round."""
    text = "pre-allocated hit: within one agent pass of plain service, whatever its size"

    def rounds(series: Series, size: int) -> dict[int, float]:
        return by_number(_of(records, series, document=size, by=DOCUMENT), "first", "p50_ms")

    beyond = {size: difference(rounds(HIT, size), rounds(AGENT, size)) for size in DOCUMENTS}
    if not all(gap.runs for gap in beyond.values()):
        return Goal(text, None, "not measured")
    seen = "; ".join(f"{size:,} B: {gap.signed(2)} ms" for size, gap in beyond.items())
    return Goal(text, not any(map(surely_above, beyond.values())), f"less an agent pass, {seen}")


def _costs(records: Sequence[Record]) -> list[Goal]:
    def goal(text: str, page: str, share: float) -> Goal:
        ours, theirs = (cpu_us(records, series, page) for series in (AGENT, CHAIN))
        return _at_most(text, ours, theirs, share, lambda mean: f"{mean.text(0)} us")

    return [
        goal("the agent's CPU of a 1 KB page: at most half of HAProxy's", KILO, HALF),
        goal("the agent's CPU of a 1 MB page: at most a tenth of HAProxy's", MEGA, TENTH),
    ]


def _answered(records: Sequence[Record]) -> Goal:
    failed, answered = (sum(record.result[what] for record in records) for what in ("failed", "answered"))
    return Goal("every request is answered", not failed, f"{answered:,} of {answered + failed:,}")


def shapes(records: Sequence[Record]) -> list[Finding]:
    """Compare the shapes of the curves in LCS's figures, which have no published numbers, with the measured curves."""

    def at(series: Series, size: int = max(DOCUMENTS), by: str = DOCUMENT) -> float:
        return first_ms(records, series, document=size, by=by).value

    def rise(series: Series) -> float:
        return at(series) / at(series, min(DOCUMENTS))

    def more(what: str, ours: float, theirs: float) -> list[Finding]:
        return shape("Fig. 7", what, "more", ours / theirs, agrees=ours > theirs)

    def little(what: str, ours: float, theirs: float) -> list[Finding]:
        return shape("Fig. 6b", what, "little more", ours / theirs, agrees=ours <= FLAT_TIMES * theirs)

    plain, document, hit, miss = (at(series) for series in (PLAIN, AGENT, HIT, MISS))
    grow = "almost exponentially more"
    return [
        *little("delayed binding beside plain service", at(AGENT, by=BOUND), plain),
        *little("plain service beside a single server", plain, at(DIRECT)),
        *more("rules beside no rules", document, plain),
        *shape(
            "Fig. 7", "a hit, largest beside smallest", "as much", rise(HIT), agrees=rise(HIT) <= FLAT_TIMES, why=SENT
        ),
        *shape("Fig. 7", "a miss, largest beside smallest", grow, rise(MISS), agrees=rise(MISS) > FLAT_TIMES),
        *more("a miss beside no guess", miss, document),
        *more("no guess beside a hit", document, hit),
    ]


def report(records: Sequence[Record]) -> Report:
    """Report the tables of pages and of documents, and the comparison with the curves of LCS."""
    tables = [_pages_table(records, page) for page in (KILO, MEGA)]
    return Report(
        tables=[*tables, _posts_table(records), shapes_table(shapes(records))],
        goals=[*_first_bytes(records), *_costs(records), _answered(records)],
        summary={record.key: {**record.parameters, **record.result} for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw times to the first byte and CPU times as bars, and times of posted documents as in LCS's Figure 7."""
    times, cpu, posts = figure.subplots(1, 3)
    known = _known(records, "page")
    _bars(
        times,
        known,
        {what: [first_ms(records, series, f"{what}_ms", page=KILO) for series in known] for what in _WHAT},
    )
    times.set_title("1 KB page, first byte (ms)", fontsize="medium")
    pages = {"1 KB": KILO, "1 MB": MEGA}
    _bars(cpu, known, {what: [cpu_us(records, series, page) for series in known] for what, page in pages.items()})
    cpu.set_title("CPU of agent or proxy (us)", fontsize="medium")
    if known:
        cpu.set_yscale("log")
    for series in _known(records, "document"):
        for by, style in ((BOUND, "o--"), (DOCUMENT, "o-")):
            sizes, means = _by_size(records, series, by)
            if sizes:
                posts.plot(sizes, [mean.value for mean in means], style, label=_titled(series, by), ms=3)
    posts.set_xlabel("bytes posted")
    posts.set_title("documents, first byte (ms)", fontsize="medium")
    posts.grid(alpha=0.3)
    if posts.lines:
        posts.set_xscale("log")
        posts.set_yscale("log")
        posts.legend(fontsize="x-small")


_WHAT = ("p50", "p99")


def _bars(axes: Axes, known: Sequence[Series], values: dict[str, list[Mean]]) -> None:
    width = 0.8 / len(values)
    for number, (what, means) in enumerate(values.items()):
        places = [place + number * width for place in range(len(known))]
        axes.bar(places, [mean.value for mean in means], width, yerr=[mean.bar for mean in means], label=what)
    axes.set_xticks(range(len(known)), [series.name for series in known], rotation=60)
    axes.legend(fontsize="x-small")
    axes.grid(axis="y", alpha=0.3)


EXPERIMENT = Experiment(
    name="content-ttfb",
    title="Content switching: time to the first byte, and CPU of a request",
    source="Chow, Wang & Prakash, Figs. 6b and 7",
    about="A new connection for each request, at 30 % of what HAProxy answers, three Apache servers behind one switch. "
    "HAProxy and nginx in HTTP mode are hosts of it, with the agents' rules.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
