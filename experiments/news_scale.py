"""NEWS at sizes that no lab reaches: quality of decisions and cost of the controller, by number of clients, responses
and destinations; simulated."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from experiments import simulated
from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report, Values
from experiments.intervals import Mean, mean_of
from experiments.news_table1 import PAPER_LOSS_NEWS
from experiments.records import Columns, grouped, table
from sim.crowd import CrowdRun
from sim.crowd import simulate as simulate_crowd
from sim.dumbbell import Dumbbell, clients, plan, recorded
from topo.plan.crowd.network import TARGET, TARGET_ADDRESS

SIZES = (0.25, 1.0, 4.0, 16.0)
OTHERS = (16, 64, 250)
"""Numbers of destinations in addition to the target; the P4 program's selectors have room for 256 services in all."""
QUICK_SIZE = 0.25
NEVER_S, OFTEN_S = 3600.0, 10.0
"""Seconds between two decisions on the ratios of a destination other than the target. NEVER_S is longer than a run, so
that NEWS is measured alone; OFTEN_S is the controller's default period, for one set-up."""
VARIANTS = ("news-hsi", "production")
SEEDS = (1, 2, 3)
TIMES = 160.0, 460.0
"""Seconds of the crowd's onset and of the run's end. The onset is at the same phase of an interval as in Chen &
Heidemann, with fewer intervals before and after it."""
QUICK_TIMES = 100.0, 220.0
"""Seconds of onset and end for larger sizes in the quick form: enough for the alarm and half a minute of
measurement."""
SECONDS_PER_DECISION = 2e-4
"""Approximate seconds of one service's ratio decision, to estimate the time left."""
OF_A_CORE = 0.02
"""Share of one core below which the controller's mean CPU use over a run must stay."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every size with the fewest destinations.

    The full form has, at the published size (1), also every number of destinations, and NEWS with hot-spot
    identification while all destinations are balanced each OFTEN_S. The quick form has shorter runs of the larger
    sizes.
    """
    if quick:
        short = [
            _point(size, OTHERS[0], NEVER_S, variant, 1, times=QUICK_TIMES)
            for size in SIZES[1:]
            for variant in VARIANTS
        ]
        return [*(_point(QUICK_SIZE, OTHERS[0], NEVER_S, variant, 1) for variant in VARIANTS), *short]
    places = [
        *((size, OTHERS[0], NEVER_S) for size in SIZES),
        *((1.0, others, NEVER_S) for others in OTHERS[1:]),
        (1.0, OTHERS[-1], OFTEN_S),
    ]
    return [
        _point(*place, variant, seed)
        for seed in SEEDS
        for place in places
        for variant in VARIANTS
        if place[2] == NEVER_S or variant == VARIANTS[0]
    ]


def _point(
    size: float, others: int, period_s: float, variant: str, seed: int, *, times: tuple[float, float] = TIMES
) -> Point:
    parameters: dict[str, Any] = {
        "variant": variant,
        "size": size,
        "others": others,
        "others_period_s": period_s,
        "onset_s": times[0],
        "end_s": times[1],
        "seed": seed,
    }
    dumbbell = simulated.dumbbell(parameters)
    onset_s, end_s = times
    rates = dumbbell.quiet_per_s * onset_s + dumbbell.crowd_per_s * (end_s - onset_s) + dumbbell.others_per_s * end_s
    seconds = 1 + size * rates * simulated.SECONDS_PER_REQUEST + (end_s / period_s) * others * SECONDS_PER_DECISION
    balanced = "" if period_s == NEVER_S else f", balanced each {period_s:g} s"
    return Point(f"size {size:g}, {others} others{balanced}, {variant} #{seed}", parameters, seconds)


def measure(point: Point) -> Values:
    """Simulate a point, and return the figures of the run."""
    dumbbell = simulated.dumbbell(point.parameters)
    return values(dumbbell, simulate_crowd(plan(dumbbell)))


def values(dumbbell: Dumbbell, run: CrowdRun) -> Values:
    """Return the crowd's figures and the controller's figures.

    The controller's figures are the hot spots that it identified, the refusals of other destinations relative to their
    requests from the onset on, the share of the responses' packets that were measured, and the CPU time of its steps.
    """
    alarmed = [decision for decision in run.decisions if decision.detection.alarm]
    named = [decision.hot_spot for decision in alarmed if decision.hot_spot is not None]
    others = [each for each in run.outcomes if each.server != TARGET and each.due_s >= dumbbell.onset_s]
    steps = [step.cpu_s for step in run.steps if step.decides and step.time_s > dumbbell.onset_s]
    flows = [decision.measurement.flows for decision in run.decisions if decision.time_s > dumbbell.onset_s]
    return {
        **simulated.values(recorded(dumbbell, run)),
        "clients": clients(dumbbell),
        "requests": len(run.outcomes),
        "named": len(named),
        "named_right": sum(hot_spot == TARGET_ADDRESS.packed for hot_spot in named),
        "named_after_s": next(
            (
                decision.time_s - alarmed[0].time_s
                for decision in alarmed
                if decision.hot_spot is not None and decision.hot_spot == TARGET_ADDRESS.packed
            ),
            None,
        ),
        "others_refused": sum(count for name, count in run.refused.items() if name != TARGET) / max(1, len(others)),
        "flows": statistics.fmean(flows) if flows else None,
        "measured_share": 1 - run.unmeasured,
        "least_share": run.least_share,
        "decide_ms": 1000 * statistics.median(steps) if steps else None,
        "longest_ms": 1000 * max(step.cpu_s for step in run.steps),
        "of_a_core": sum(step.cpu_s for step in run.steps) / dumbbell.end_s,
    }


Place = tuple[str, float, int, float]
"""Variant, size, number of other destinations, and the balancing period of the other destinations in seconds."""
Rows = Mapping[Place, Sequence[Record]]


def _place(record: Record) -> Place:
    parameters = record.parameters
    return parameters["variant"], parameters["size"], parameters["others"], parameters["others_period_s"]


def _first(place: Place) -> list[str]:
    """Return the first three cells of a row: variant, size, and destinations."""
    variant, size, others, period_s = place
    return [variant, f"{size:g}", f"{others + 1}{'' if period_s == NEVER_S else f', balanced each {period_s:g} s'}"]


def _mean(runs: Sequence[Record], name: str, scale: float = 1.0) -> Mean:
    return mean_of([scale * value for record in runs if (value := record.result[name]) is not None])


def _kept(runs: Sequence[Record]) -> Mean:
    """Return the mean ratio of AR in the crowd to AR before the crowd, over the runs that measured both."""
    parts = [(record.result["crowd"]["ar_kbps"], record.result["quiet"]["ar_kbps"]) for record in runs]
    return mean_of([crowd / quiet for crowd, quiet in parts if crowd is not None and quiet])


def _right(runs: Sequence[Record]) -> str:
    named, right = (sum(record.result[name] for record in runs) for name in ("named", "named_right"))
    return f"{right} of {named}"


def _of(runs: Sequence[Record]) -> str:
    """Return " of 1/N" if a run measured only every Nth response; an empty text if all runs measured all responses."""
    least = min(record.result.get("least_share", 1.0) for record in runs)
    return "" if least == 1 else f" of 1/{1 / least:.0f}"


WHERE: Columns[Place] = {
    "mode": lambda place, _: _first(place)[0],
    "size": lambda place, _: _first(place)[1],
    "destinations": lambda place, _: _first(place)[2],
}
DECISIONS: Columns[Place] = {
    "clients": lambda _, runs: f"{runs[0].result['clients']:,}",
    **simulated.columns("alarm after (s)", "false alarms a run"),
    "hot spot right": lambda _, runs: _right(runs),
    "others' requests refused": lambda _, runs: f"{_mean(runs, 'others_refused', 100).text(2)} %",
    "AR, of before": lambda _, runs: _kept(runs).text(2),
    **simulated.columns("loss", "link used"),
}
COST: Columns[Place] = {
    "requests": lambda _, runs: _mean(runs, "requests").text(0),
    "flows a decision": lambda _, runs: _mean(runs, "flows").text(0),
    "packets measured": lambda _, runs: f"{_mean(runs, 'measured_share', 100).text(0)} %{_of(runs)}",
    "CPU to decide (ms)": lambda _, runs: _mean(runs, "decide_ms").text(1),
    "longest step (ms)": lambda _, runs: _mean(runs, "longest_ms").text(1),
    "of a core": lambda _, runs: f"{_mean(runs, 'of_a_core', 100).text(2)} %",
}
GOALS: Sequence[tuple[str, Callable[[Record], bool], str]] = (
    (
        "the alarm comes within an interval of the paper's 60 s",
        lambda record: simulated.detections_s([record])[0] <= record.result["period_s"],
        "alarm after (s)",
    ),
    (
        "whoever is named the hot spot is the target",
        lambda record: 0 < record.result["named"] == record.result["named_right"],
        "hot spot right",
    ),
    (
        "no request to another destination is refused",
        lambda record: record.result["others_refused"] == 0,
        "others' requests refused",
    ),
    (
        f"the controller takes less than {OF_A_CORE:.0%} of a core",
        lambda record: record.result["of_a_core"] < OF_A_CORE,
        "of a core",
    ),
    (
        f"at most {PAPER_LOSS_NEWS:.0%} of the packets are lost in the crowd, as under NEWS in Table I",
        lambda record: record.result["crowd"]["response_loss"] <= PAPER_LOSS_NEWS,
        "loss",
    ),
)
"""Text of each goal, the condition that every run must fulfil, and the name of the column that shows the figure."""


def _everywhere(rows: Rows, text: str, holds: Callable[[Record], bool], shown: str) -> Goal:
    """Return a goal that every run must reach; its result names the set-ups that missed the goal, or else all
    set-ups."""
    cell = {**DECISIONS, **COST}[shown]
    missed = [place for place, runs in rows.items() if not all(map(holds, runs))]
    said = "; ".join(f"{_named(place)}: {cell(place, rows[place])}" for place in missed)
    return Goal(text, not missed if rows else None, said or (_tried(rows) if rows else "-"))


def _tried(rows: Rows) -> str:
    """Return a text with the number of runs, their sizes, and their numbers of destinations."""
    runs = sum(map(len, rows.values()))
    sizes = sorted({size for _, size, _, _ in rows})
    destinations = sorted({others + 1 for _, _, others, _ in rows})
    count = {1: "the one run", 2: "both runs"}.get(runs, f"all {runs} runs")
    size = f"size{'s' if len(sizes) > 1 else ''} {' to '.join(f'{size_value:g}' for size_value in _ends(sizes))}"
    return f"in {count}: {size}, {' to '.join(str(number) for number in _ends(destinations))} destinations"


def _ends(values: Sequence[float]) -> Sequence[float]:
    """Return the least and the greatest of sorted values, or the only value."""
    return (values[0], values[-1]) if len(values) > 1 else values


def _named(place: Place) -> str:
    variant, size, destinations = _first(place)
    return f"{variant}, size {size}, destinations {destinations}"


def report(records: Sequence[Record]) -> Report:
    """Report a table of the decisions' quality and a table of their cost, with a row for each set-up."""
    rows = grouped(records, _place)
    return Report(
        tables=[table({**WHERE, **columns}, rows) for columns in (DECISIONS, COST)],
        goals=[_everywhere(rows, *goal) for goal in GOALS],
        summary={
            record.key: {k: v for k, v in record.result.items() if k not in ("rows", "bulk")} for record in records
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the ratio of AR in the crowd to AR before the crowd, and the share of measured packets, against size. Draw
    the CPU time of a decision against the number of flows."""
    left, right = figure.subplots(1, 2)
    rows = grouped(records, _place)
    for number, variant in enumerate(VARIANTS):
        of_size = sorted(
            (size, runs) for (name, size, others, _), runs in rows.items() if (name, others) == (variant, OTHERS[0])
        )
        sizes, colour = [size for size, _ in of_size], f"C{number}"
        left.plot(
            sizes, [_kept(runs).value for _, runs in of_size], "o-", color=colour, label=f"AR, of before, {variant}"
        )
        shares = [_mean(runs, "measured_share").value for _, runs in of_size]
        left.plot(sizes, shares, "s:", color=colour, label=f"packets measured, {variant}")
        for (name, _, others, _), runs in rows.items():
            if name == variant:
                place = _mean(runs, "flows").value, _mean(runs, "decide_ms").value
                right.plot(*place, "o" if others == OTHERS[0] else "^", color=colour)
                right.annotate(f"{others + 1}", place, fontsize="xx-small")
    left.set_xscale("log")
    left.set_xlabel("size (1: 1,000 clients)")
    left.set_ylim(0, None)
    left.legend(fontsize="x-small")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("flows a decision (at a point: destinations)")
    right.set_ylabel("CPU to decide, ms")
    for axes in (left, right):
        axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="news-scale",
    title="NEWS at scale, simulated",
    source="Beyond Chen & Heidemann",
    about="The simulation of Table I with hot-spot identification. A size multiplies clients, requests, link "
    "and queue; size 1 has 1,000 clients.",
    points=points,
    compute=measure,
    report=report,
    draw=draw,
)
