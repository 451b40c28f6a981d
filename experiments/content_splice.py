"""A spliced transfer of 100 MB (the agent has left the connection to the switch) compared with plain forwarding by the
same switch, in interleaved pairs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from experiments.contentplace import AGENT, BYTES, HUNDRED, KILO, LAST, PLAIN, RULES, SERIES, ContentPlace
from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import mean_of
from experiments.records import matching
from experiments.webpool import passed_since
from topo.testbed.errors import SetupError
from topo.testbed.processes import Process

PAIRS, QUICK_PAIRS = 30, 10
PATH = LAST.replace(KILO, HUNDRED)
UNDER_WAY = 5_000
"""When the client has received and sent this number of packets of a transfer, the connection is certainly spliced; the
answer alone has about 70,000 packets."""
TIMEOUT_S = 60.0
LEAST_SHARE, MOST_CPU = 0.9, 1.3


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure in pairs (plain and spliced), in alternating order within the pair."""
    pairs = [((PLAIN, AGENT), (AGENT, PLAIN))[number % 2] for number in range(QUICK_PAIRS if quick else PAIRS)]
    return [
        Point(f"{series.name} {HUNDRED} #{number}", {"series": series.name, "pair": number}, 3.0, "place")
        for number, pair in enumerate(pairs)
        for series in pair
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab with hosts that use no TCP timestamps, because the agents use none either."""
    del group
    with ContentPlace(RULES, say, timestamps=False) as place:
        yield lambda point: transfer(place, point.parameters["series"])


def transfer(place: ContentPlace, name: str) -> Values:
    """Fetch the page of 100 MB; return the transfer's rate, the agent's packets before and after the splice, and the
    switch's CPU time per packet."""
    series = SERIES[name]
    packets, cpu_s = place.quiet_packet_counts(), place.cpu_s()["switch"]
    agent, client = place.agent_packets(), place.client_packets()
    url = f"http://{series.address}:{series.port}{PATH}"
    curl = Process(
        "curl",
        ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download} %{time_total}\n", url],
        log=place.directory / "curl.txt",
        namespace_pid=place.pid(series.client.name),
    )
    try:
        curl.await_true("the transfer is under way", lambda: place.client_packets() - client > UNDER_WAY, TIMEOUT_S)
        spliced = place.agent_packets()
        curl.wait(TIMEOUT_S)
    finally:
        curl.stop()
    code, size, seconds = curl.output().split()[-3:]
    if (code, int(size)) != ("200", BYTES[HUNDRED]):
        raise SetupError(f"{series.title}: {code}, {size} of {BYTES[HUNDRED]} bytes")
    passed = passed_since(place, packets)
    return {
        "mb_per_s": BYTES[HUNDRED] / float(seconds) / 1e6,
        "agent_before": spliced - agent,
        "agent_after": place.agent_packets() - spliced,
        "switch_us_per_packet": 1e6 * (place.cpu_s()["switch"] - cpu_s) / passed["received"],
        "switch": passed,
    }


# -- the report


def pairs(records: Sequence[Record], figure: str) -> list[float]:
    """Return for each pair the ratio of a figure of the spliced transfer to the same figure of plain forwarding."""
    rates: dict[str, dict[int, float]] = {AGENT.name: {}, PLAIN.name: {}}
    for record in records:
        rates[record.parameters["series"]][record.parameters["pair"]] = record.result[figure]
    plain, spliced = rates[PLAIN.name], rates[AGENT.name]
    return [spliced[number] / plain[number] for number in spliced if number in plain]


def _median(records: Sequence[Record], figure: str, text: str, limits: Mapping[str, float]) -> Goal:
    shares = pairs(records, figure)
    if not shares:
        return Goal(text, None, "not measured")
    median = statistics.median(shares)
    reached = limits.get("least", 0.0) <= median <= limits.get("most", math.inf)
    return Goal(text, reached, f"{median:.2f} (pairs: {min(shares):.2f} to {max(shares):.2f})")


def _row(records: Sequence[Record], name: str) -> list[str]:
    runs = [record.result for record in matching(records, series=name)]
    cells = [mean_of([result[what] for result in runs]).text(1) for what in ("mb_per_s", "switch_us_per_packet")]
    before, after = (sorted({result[f"agent_{when}"] for result in runs}) for when in ("before", "after"))
    return [SERIES[name].title, str(len(runs)), *cells, _range(before), _range(after)]


def _range(values: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(str(value) for value in (*values[:1], *values[-1:]))) or "-"


def report(records: Sequence[Record]) -> Report:
    """Report a table with a row of means for each series, and goals for the medians over the pairs."""
    after = [record.result["agent_after"] for record in matching(records, series=AGENT.name)]
    goals = [
        _median(records, "mb_per_s", "spliced: at least 0.9 of plain forwarding, median", {"least": LEAST_SHARE}),
        _median(
            records,
            "switch_us_per_packet",
            "spliced: at most 1.3 times the switch's CPU of a packet, median",
            {"most": MOST_CPU},
        ),
        Goal(
            "no packet at the agent after the splice",
            not any(after) if after else None,
            f"{sum(after)} in {len(after)} transfers" if after else "not measured",
        ),
    ]
    heading = ["100 MB", "transfers", "MB/s", "switch's CPU (us a packet)", "packets at the agent", "after the splice"]
    rows = [_row(records, series.name) for series in (PLAIN, AGENT)]
    summary = {record.key: {**record.parameters, **record.result} for record in records}
    return Report([Table(heading, rows)], goals, summary)


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw both rates of each pair in the order of the pairs, and the ratios of the two rates in the order of size."""
    rates, ratios = figure.subplots(1, 2)
    for series in (PLAIN, AGENT):
        runs = matching(records, series=series.name)
        label = series.title if series is PLAIN else "spliced"
        numbers = [run.parameters["pair"] for run in runs]
        rates.plot(numbers, [run.result["mb_per_s"] for run in runs], "o", label=label, ms=3)
    rates.set_ylabel("MB/s")
    rates.set_ylim(0, None)
    rates.legend(fontsize="small")
    ratios.plot(sorted(pairs(records, "mb_per_s")), "o-", ms=3)
    ratios.axhline(LEAST_SHARE, ls="--", lw=1)
    ratios.set_ylabel("spliced / plain, in order of size")
    for axes in (rates, ratios):
        axes.set_xlabel("pair")
        axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="content-splice",
    title="Content switching: a spliced transfer",
    source="Chow, Wang & Prakash, section 3.1",
    about="One connection fetches 100 MB through plain service and through an agent, in turn, without timestamps. "
    "Packets at the agent are counted before and after the splice.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
