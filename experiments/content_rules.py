"""CPU cost of a content-switching decision: by number and kind of rules, by size of the body, and against HAProxy and
nginx."""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from experiments.contentload import Requests, example
from experiments.contentplace import AGENT, CHAIN, KILO, LOCATION, MAP, SERIES, ContentPlace, Series
from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.findings import Finding, shape
from experiments.findings import table as shapes_table
from experiments.intervals import Mean, mean_of
from experiments.records import matching
from topo.testbed.errors import SetupError

INDEXED = ("exact", "prefix", "suffix", "host", "number")
SCANNED = "regex without a literal"
KINDS = (*INDEXED, "contains", "regex", SCANNED)
BODIES = ("xml", "json")
COUNTS = (1, 10, 100, 1_000, 10_000)
QUICK_COUNTS = (1, 100, 10_000)
"""Numbers of rules in the lab in the experiment's quick form; the benchmark always measures all numbers in COUNTS."""
PLACES = ("first", "last", "none")
WHERE = ("early", "late", "absent")
ASKED = (AGENT, CHAIN, MAP, LOCATION)
BENCH = "bench"
EACH_S, QUICK_EACH_S = 0.5, 0.2
REPETITIONS = 3
RATE_PER_S, SECONDS = 100.0, 3.0
TIMEOUT_S = 300.0
FLAT_TIMES, MOST_US = 2.0, 5.0
LINEAR_TIMES = 1.5
"""The largest factor by which a cost that counts as linear, in the number of rules or in the size of a body, may exceed
proportional growth."""
LEAST_MB_PER_S = 100.0
EARLY_SHARE = 0.1
"""The largest time of a decision by an element near the body's start, as a share of the time with the element at the
body's end. The rest of the body need not be read."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: the benchmark for each kind of rule and of body, then lab runs for each number of
    rules."""
    each = QUICK_EACH_S if quick else EACH_S
    rounds = range(1 if quick else REPETITIONS)
    bench = [
        Point(f"{kind}, {each:g} s #{number}", {"kind": kind, "each_s": each}, 25 * each + 2, BENCH)
        for number in rounds
        for kind in (*KINDS, *BODIES)
    ]
    lab = [
        Point(
            f"{series.name}, {count} rules, {where} #{number}",
            {"series": series.name, "rules": count, "place": where, "rate_per_s": RATE_PER_S, "seconds": SECONDS},
            SECONDS + 3,
            f"{count} {number}",
        )
        for number in rounds
        for count in (QUICK_COUNTS if quick else COUNTS)
        for where in (PLACES[1:] if quick else PLACES)
        for series in ASKED
    ]
    return [*bench, *lab]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Yield the function that measures a point, for the benchmark or for a lab, whose number of rules is in `group`."""
    if group == BENCH:
        yield lambda point: bench(point.parameters["kind"], point.parameters["each_s"])
        return
    count = int(group.split(maxsplit=1)[0])
    with ContentPlace(count, say) as place:

        def measure(point: Point) -> Values:
            asked = point.parameters
            requests = Requests([path(count, asked["place"])], asked["rate_per_s"], asked["seconds"])
            return place.run(SERIES[asked["series"]], requests)

        yield measure


def path(count: int, where: str) -> str:
    """Return a path that matches the first of `count` rules, the last rule, or no rule, as `where` selects."""
    return {"first": f"/shop/0/{KILO}", "last": f"/shop/{count - 1}/{KILO}", "none": f"/{KILO}"}[where]


def bench(kind: str, each_s: float) -> Values:
    """Run the rule engine's benchmark for one kind of rule or body."""
    command = [example("decide"), "--json", "--only", kind, "--seconds", str(each_s)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
    if done.returncode:
        raise SetupError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-1000:]}")
    return {"lines": [json.loads(line) for line in done.stdout.splitlines()]}


# -- the report


def _lines(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    return [line for record in records for line in record.result.get("lines", ())]


def decision_us(records: Sequence[Record], kind: str, count: int, where: str) -> Mean:
    """Return the mean time of a decision in microseconds with `count` rules of a kind; `where` is the place of the rule
    that matches (`none`: no rule matches)."""
    lines = [line for line in _lines(records) if (line.get("kind"), line.get("rules")) == (kind, count)]
    return mean_of([line[f"{where}_ns"] / 1e3 for line in lines])


def bodies(records: Sequence[Record], kind: str, where: str) -> dict[int, tuple[Mean, Mean]]:
    """Return the microseconds and the MB/s of a decision on a kind of body, by the body's size in bytes (rounded to a
    power of ten); `where` is the place of the deciding element in the body (`absent`: there is none)."""
    lines_by_size: dict[int, list[Mapping[str, Any]]] = {}
    for line in _lines(records):
        if (line.get("body"), line.get("place")) == (kind, where):
            lines_by_size.setdefault(10 ** round(math.log10(line["bytes"])), []).append(line)
    return {
        size: (mean_of([line["ns"] / 1e3 for line in lines]), mean_of([line["mb_per_s"] for line in lines]))
        for size, lines in sorted(lines_by_size.items())
    }


def request_us(records: Sequence[Record], series: Series, count: int, where: str) -> Mean:
    """Return the mean CPU time per request in microseconds of the series' agent or proxy in the lab."""
    runs = matching(records, series=series.name, rules=count, place=where)
    return mean_of([record.result["cpu_us"][series.process] for record in runs])


def _decisions_table(records: Sequence[Record]) -> Table:
    rows = [
        [kind, *("/".join(decision_us(records, kind, count, where).text(2) for where in PLACES) for count in COUNTS)]
        for kind in KINDS
    ]
    rows = [[cell.replace("-/-/-", "-") for cell in row] for row in rows]
    return Table(["a decision (us): first / last / none", *(f"{count:,} rules" for count in COUNTS)], rows)


def _bodies_table(records: Sequence[Record]) -> Table:
    rows: list[list[str]] = []
    sizes = sorted({size for kind in BODIES for size in bodies(records, kind, WHERE[0])})
    for kind in BODIES:
        for where in WHERE:
            known = bodies(records, kind, where)
            cells = [f"{known[size][0].text(0)} ({known[size][1].text(0)})" if size in known else "-" for size in sizes]
            rows.append([kind.upper(), where, *cells])
    return Table(["body", "element", *(f"{size:,} bytes: us (MB/s)" for size in sizes)], rows)


def _lab_table(records: Sequence[Record]) -> Table:
    counts = sorted({record.parameters["rules"] for record in records if "rules" in record.parameters})
    rows = [
        [series.title, where, *(request_us(records, series, count, where).text(0) for count in counts)]
        for series in ASKED
        for where in PLACES
        if any(request_us(records, series, count, where).runs for count in counts)
    ]
    return Table(["CPU of a request (us)", "matches", *(f"{count:,} rules" for count in counts)], rows)


def _flat(records: Sequence[Record], kind: str) -> Goal:
    """Require that a decision takes at most MOST_US, and at most FLAT_TIMES times as long as with 1 rule, wherever the
    matching rule is."""
    text = f"{kind}: flat within {FLAT_TIMES:g} times of 1 rule, at most {MOST_US:g} us"
    times = {
        where: [mean.value for count in COUNTS if (mean := decision_us(records, kind, count, where)).runs]
        for where in PLACES
    }
    if not all(len(values) > 1 for values in times.values()):
        return Goal(text, None, "not measured")
    growth = max(max(values) / values[0] for values in times.values())
    worst = max(map(max, times.values()))
    return Goal(text, growth <= FLAT_TIMES and worst <= MOST_US, f"{growth:.2f} times, {worst:.2f} us")


def _linear(records: Sequence[Record]) -> Goal:
    text = "regexes without a literal: linear up to 100"
    ten, hundred = (decision_us(records, SCANNED, count, "none").value for count in (10, 100))
    if math.isnan(ten) or math.isnan(hundred):
        return Goal(text, None, "not measured")
    seen = f"{hundred / ten:.1f} times the time for 10 times the rules"
    return Goal(text, hundred <= 10 * LINEAR_TIMES * ten, seen)


def _body_goals(records: Sequence[Record], kind: str) -> list[Goal]:
    read = [bodies(records, kind, where) for where in WHERE[1:]]
    early, late = (bodies(records, kind, where) for where in WHERE[:2])
    fast = f"{kind.upper()}: at least {LEAST_MB_PER_S:g} MB/s"
    ends = f"{kind.upper()}: ends when decided"
    if not (early and late and all(read)):
        return [Goal(fast, None, "not measured"), Goal(ends, None, "not measured")]
    slowest, size = min((rate.value, size) for rates in read for size, (_, rate) in rates.items())
    share = early[max(early)][0].value / late[max(late)][0].value
    return [
        Goal(fast, slowest >= LEAST_MB_PER_S, f"{slowest:.0f} MB/s at {size:,} bytes"),
        Goal(ends, share <= EARLY_SHARE, f"{share:.1%}"),
    ]


def shapes(records: Sequence[Record]) -> list[Finding]:
    """Compare the shapes of the curves in LCS's figures, which have no published numbers, with the measured curves."""
    few, many = (decision_us(records, "prefix", count, "last").value for count in (COUNTS[0], COUNTS[-1]))
    single, hundred = (decision_us(records, SCANNED, count, "none").value for count in (1, 100))
    late = {size: us.value for size, (us, _) in bodies(records, "xml", "late").items()}
    small, large = (min(late), max(late)) if late else (1, 1)
    grown = late[large] / late[small] if late else math.nan
    return [
        *shape(
            "Fig. 6a",
            "10,000 rules on prefixes beside 1",
            "longer",
            many / few,
            agrees=many > 2 * few,
            why="looked up, not scanned",
        ),
        *shape(
            "Fig. 6a",
            "100 regexes without a literal beside 1",
            "longer",
            hundred / single,
            agrees=hundred > 2 * single,
            why="one automaton reads for all of them",
        ),
        *shape(
            "Fig. 6c",
            f"XML {large // small:,} times as large",
            "dramatically longer",
            grown,
            agrees=grown > LINEAR_TIMES * large / small,
            why="read once, without recursion: in proportion",
        ),
    ]


def report(records: Sequence[Record]) -> Report:
    """Report the tables of decisions, of bodies and of requests in the lab, and the comparison with the curves of
    LCS."""
    return Report(
        tables=[
            _decisions_table(records),
            _bodies_table(records),
            _lab_table(records),
            shapes_table(shapes(records)),
        ],
        goals=[
            *(_flat(records, kind) for kind in INDEXED),
            _linear(records),
            *(goal for kind in BODIES for goal in _body_goals(records, kind)),
        ],
        summary={record.key: {**record.parameters, **record.result} for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the cost of decisions and of requests by number of rules (LCS's Figure 6a), and the cost of decisions on a
    body by the body's size (LCS's Figure 6c)."""
    decisions, lab, large = figure.subplots(1, 3)
    for kind in KINDS:
        known = {count: mean.value for count in COUNTS if (mean := decision_us(records, kind, count, "last")).runs}
        decisions.plot(list(known), list(known.values()), "o-", label=kind, ms=3)
    decisions.set_title("decision, last rule (us)", fontsize="medium")
    for series in ASKED:
        requests = {count: mean.value for count in COUNTS if (mean := request_us(records, series, count, "last")).runs}
        lab.plot(list(requests), list(requests.values()), "o-", label=series.title, ms=3)
    lab.set_title("CPU of a request, last rule (us)", fontsize="medium")
    for kind in BODIES:
        for where, style in zip(WHERE, ("o:", "o-", "o--"), strict=True):
            times = {size: mean.value for size, (mean, _) in bodies(records, kind, where).items()}
            large.plot(list(times), list(times.values()), style, label=f"{kind.upper()}, {where}", ms=3)
    large.set_title("decision by a body (us)", fontsize="medium")
    for axes, what in ((decisions, "rules"), (lab, "rules"), (large, "bytes")):
        axes.set_xlabel(what)
        axes.grid(alpha=0.3)
        if any(len(line.get_xdata()) for line in axes.lines):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.legend(fontsize="x-small")


EXPERIMENT = Experiment(
    name="content-rules",
    title="Content switching: a decision",
    source="Chow, Wang & Prakash, Figs. 6a and 6c",
    about="The rule engine alone, one thread; bodies with the element early, late or absent. In the lab, by the same "
    "rules on the path, agent, HAProxy and nginx serve 100 requests/s.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
