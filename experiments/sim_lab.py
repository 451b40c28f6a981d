"""The simulation held against the lab at the lab's size: the demo, and flash crowds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import mean_of
from experiments.webpool import quiet
from sim.demo import EQUAL_S, PAGE_S, Phases, simulate_demo, work_s
from sim.lab import simulate_lab
from sim.slices import Slices
from topo.demo import Settings as DemoSettings
from topo.demo import run_demo
from topo.news.measures import Records, figures
from topo.news.records import read_records
from topo.news.run import Run, is_done, make_run
from topo.news.scenarios import NETWORK, VARIANTS
from topo.news.settings import Settings
from topo.switches import REPOSITORY, switch_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEDS_A_RUN = 5
"""Of the demo's simulations; every run of the lab has its own."""
RUNS = REPOSITORY / "results/experiments/sim-lab"
"""Of the lab, a directory each."""
DEMO_LAB_S, DEMO_SIMULATED_S = 195.0, 5.0
CROWD_ENDS_S, CROWD_SIMULATED_S = 30.0, 25.0
"""Seconds, about: a demo and its simulations; what a crowd's lab takes beside its load, and its simulation."""
CROWD_VARIANTS = ("none", "news-hsi", "production")
CROWD_FIGURES = {
    "detected_after_intervals": ("alarm after (intervals)", 2, 1.0),
    "response_loss": ("loss (%)", 1, 100.0),
    "ar_kbps": ("AR (kbit/s)", 0, None),
    "admitted_per_s": ("admitted/s", 0, None),
    "offered_per_s": ("offered/s", 0, None),
    "rejected_share": ("rejected (%)", 0, 100.0),
    "bottleneck_used": ("link used (%)", 0, 100.0),
    "bystander_goodput_kbps": ("bulk (kbit/s)", 0, None),
}
"""Name, digits and scale; None: by k, into the paper's scale."""


def points(quick: bool) -> Sequence[Point]:
    """The demo; the full form makes it and three crowds, each three times."""
    settings = NETWORK.settle(Settings())
    made: list[Point] = []
    for number in range(1 if quick else 3):
        parameters: dict[str, Any] = {"seeds": list(demo_seeds(number)), "run": number}
        made.append(Point(f"demo #{number}", parameters, DEMO_LAB_S + DEMO_SIMULATED_S, "lab"))
        for variant in () if quick else CROWD_VARIANTS:
            parameters = {"variant": variant, "run": number, **settings.as_dict()}
            seconds = settings.seconds / settings.k + CROWD_ENDS_S + CROWD_SIMULATED_S
            made.append(Point(f"crowd {variant} #{number}", parameters, seconds, "lab"))
    return made


def demo_seeds(number: int) -> Sequence[int]:
    """Return the seeds of the simulations beside a run of the lab's demo."""
    return range(SEEDS_A_RUN * number + 1, SEEDS_A_RUN * (number + 1) + 1)


def expected_s(point: Point) -> float:
    """Return how long a point takes: the simulation only, if the lab's run is there."""
    number, variant = point.parameters["run"], point.parameters.get("variant")
    if variant is None:
        return DEMO_SIMULATED_S if _demo_is_there(number) else point.seconds
    there = is_done(_crowd_run(variant), switch_kind(), _crowd_directory(variant, number))
    return CROWD_SIMULATED_S if there else point.seconds


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Runs the lab (unless this very run is there), then the simulation."""
    del group

    def measure(point: Point) -> Values:
        number = point.parameters["run"]
        if "variant" not in point.parameters:
            return demo(number, say)
        return crowd(point.parameters["variant"], number)

    yield measure


# -- the demo


def demo(number: int, say: Say) -> Values:
    """Run the demo, or take the run that is there, and simulate it at its rate."""
    directory = _demo_directory(number)
    if not _demo_is_there(number):
        run_demo(DemoSettings(), directory, quiet(say))
    lab: Mapping[str, Any] = json.loads((directory / "summary.json").read_text())
    equal, by_r = lab["phases"]["equal"], lab["phases"]["r"]
    work = work_s(equal["per_server"]["s3"]["synack"] / (EQUAL_S + 5))
    runs = [simulate_demo(equal["offered_per_s"], work, seed) for seed in demo_seeds(number)]
    sliced = [simulate_demo(equal["offered_per_s"], PAGE_S, seed, Slices()) for seed in demo_seeds(number)]
    return {
        "rate_per_s": equal["offered_per_s"],
        "work_ms": 1000 * work,
        "lab": {
            "equal_ms": equal["connect_ms"]["mean"],
            "r_ms": by_r["connect_ms"]["mean"],
            "equal_failed": equal["failed"] / equal["connections"],
            "equal_syn": equal["per_server"]["s3"]["syn"] / equal["connections"],
            "loaded_ratio": lab["ratios_final"]["s3"],
            "weight_changes": lab["weight_changes"],
            **bursts(_answers(directory / "trace.jsonl")),
        },
        "simulated": [demo_figures(one) for one in runs],
        "sliced": [demo_figures(one) for one in sliced],
        "ratios": [[one.time_s - EQUAL_S, *one.ratios.values()] for one in runs[0].run.decisions[0]],
    }


def _demo_directory(number: int) -> Path:
    return RUNS / f"demo-{number}"


def _demo_is_there(number: int) -> bool:
    return (_demo_directory(number) / "summary.json").exists()


def demo_figures(phases: Phases) -> dict[str, float]:
    """The demo's figures of a simulated run."""
    return {
        "equal_ms": _connect_ms(phases, "equal"),
        "r_ms": _connect_ms(phases, "by_r"),
        "equal_failed": sum(one.done_s is None for one in phases.equal) / len(phases.equal),
        "equal_syn": (sum(one.syns for one in phases.equal) - 2 * len(phases.equal) / 3) / len(phases.equal),
        "loaded_ratio": phases.run.decisions[0][-1].ratios[2],
        "weight_changes": phases.run.weight_changes,
        **bursts([one.differences[2].synack for one in phases.run.decisions[0] if one.time_s <= EQUAL_S]),
    }


def _answers(trace: Path) -> list[int]:
    """Read what the loaded server answered in each interval of the equal split, between the bursts before it and R."""
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    fixed = list(takewhile(lambda row: row["mode"] == "fixed", rows))
    answers = [row["servers"]["s3"]["interval"]["synack"] for row in fixed]
    while answers and answers[-1] == 0:
        answers.pop()
    return answers[-round(EQUAL_S) :]


def bursts(answers: Sequence[int]) -> dict[str, float]:
    """Return the mean and the spread of answers a second, from the tenth second on (before, a queue fills)."""
    return {"answers_per_s": statistics.fmean(answers[10:]), "answers_spread": statistics.pstdev(answers[10:])}


def _connect_ms(phases: Phases, name: str) -> float:
    connections = phases.equal if name == "equal" else phases.by_r
    return 1000 * statistics.fmean(one.connect_s for one in connections if one.connect_s is not None)


# -- crowds


def crowd(variant: str, number: int) -> Values:
    """Run a crowd in the lab, or take the run that is there, and simulate it with requests drawn anew in each repeat.

    The lab's repeats all have the first one's requests: they differ by what the machine did.
    """
    directory, run = _crowd_directory(variant, number), _crowd_run(variant)
    if not is_done(run, switch_kind(), directory):
        make_run(run, switch_kind(), directory, lambda _: None)
    return {
        "lab": _crowd_figures(read_records(directory)),
        "simulated": _crowd_figures(simulate_lab(NETWORK, VARIANTS[variant], reseeded(run.settings, number))),
    }


def _crowd_directory(variant: str, number: int) -> Path:
    return RUNS / f"crowd-{variant}-{number}"


def _crowd_run(variant: str) -> Run:
    return Run(NETWORK, VARIANTS[variant], NETWORK.settle(Settings()))


def reseeded(settings: Settings, number: int) -> Settings:
    """Return the settings of a simulated repeat; the first has the lab's own requests."""
    return replace(settings, seed=settings.seed + number)


def _crowd_figures(records: Records) -> dict[str, Any]:
    return asdict(figures(records, records.window()))


# -- the report

DEMO_ROWS = {
    "equal_ms": ("connect time, equal split (ms)", 0),
    "r_ms": ("connect time, R decides (ms)", 0),
    "equal_failed": ("given up, equal split (share)", 3),
    "equal_syn": ("SYNs to the loaded server, equal split, a request", 2),
    "loaded_ratio": ("loaded server's ratio at the end", 3),
    "weight_changes": ("weight changes", 0),
    "answers_per_s": ("loaded server answers a second, equal split", 0),
    "answers_spread": ("their spread from second to second", 0),
}


DEMO_SIDES = {"lab": "lab", "simulated": "simulated, CPU shared evenly", "sliced": "in slices and turns"}


def _demo_table(runs: Sequence[Record]) -> Table:
    rows: list[list[str]] = []
    for name, (label, digits) in DEMO_ROWS.items():
        rows.append([label, *(mean_of(_each(runs, side, name)).text(digits) for side in DEMO_SIDES)])
    return Table(["the demo", *DEMO_SIDES.values()], rows)


def _crowd_table(runs: Sequence[Record]) -> Table:
    k = runs[0].parameters["k"]
    rows: list[list[str]] = []
    for variant in CROWD_VARIANTS:
        of_variant = [one for one in runs if one.parameters["variant"] == variant]
        for side in ("lab", "simulated") if of_variant else ():
            cells: list[str] = []
            for name, (_, digits, scale) in CROWD_FIGURES.items():
                values = [one.result[side][name] for one in of_variant]
                cells.append(mean_of([v * (scale or 1 / k) for v in values if v is not None]).text(digits))
            rows.append([f"{variant}, {side}", *cells])
    return Table(["flash crowd", *(label for label, _, _ in CROWD_FIGURES.values())], rows)


def _near(demos: Sequence[Record], name: str, title: str) -> Goal:
    """Hold a phase's connect time against the lab's."""
    lab = statistics.fmean(_each(demos, "lab", name))
    even, sliced = (statistics.fmean(_each(demos, side, name)) / lab - 1 for side in ("simulated", "sliced"))
    return Goal(
        f"{title}: connect time within 15 % of the lab's",
        max(abs(even), abs(sliced)) <= 0.15,
        f"{even:+.0%} evenly, {sliced:+.0%} in slices",
    )


def _sides(demos: Sequence[Record], name: str) -> tuple[float, float, float]:
    """Return a figure's means: in the lab, with the CPU shared evenly, and in slices."""
    lab, even, sliced = (statistics.fmean(_each(demos, side, name)) for side in DEMO_SIDES)
    return lab, even, sliced


def _against(lab: float, others: Sequence[float]) -> str:
    """Say where a figure of the lab lies beside those of both simulations."""
    if lab > max(others):
        return "above both simulations'"
    return "below both simulations'" if lab < min(others) else "between the simulations'"


def _relief(demos: Sequence[Record]) -> str:
    """Say how lab and simulations differ under R, in bursts and in who gives up."""
    if not demos:
        return ""
    times, spread, lost = (_sides(demos, name) for name in ("r_ms", "answers_spread", "equal_failed"))
    said = [
        f"Where R decides, the lab's mean connect time is {_against(times[0], times[1:])} ({times[0]:.0f} ms; "
        f"{times[1]:.0f} evenly, {times[2]:.0f} in slices), and the spread of the loaded server's answers from second "
        f"to second is {_against(spread[0], spread[1:])} ({spread[0]:.0f}; {spread[1]:.0f}, {spread[2]:.0f})."
    ]
    if times[0] > max(times[1:]) and spread[0] > max(spread[1:]):
        said.append(
            "The two go together: a second with hardly an answer overflows an accept queue that a steady server of the "
            "same rate would keep up with."
        )
    said.append(
        f"Under the equal split {lost[0]:.1%} of the connections are given up in the lab, {lost[1]:.1%} evenly, "
        f"{lost[2]:.1%} in slices."
    )
    return " ".join(said)


def _crowds_without_control(crowds: Sequence[Record]) -> str:
    """Say so where the simulation keeps more of a crowd alive that nobody limits, and what it leaves out."""
    runs = [one for one in crowds if one.parameters["variant"] == "none"]
    if not runs:
        return ""
    lab, simulated = (statistics.fmean(one.result[side]["ar_kbps"] for one in runs) for side in ("lab", "simulated"))
    if simulated <= lab:
        return ""
    return (
        f"Of the crowds without control the simulation's TCP keeps more alive (AR {simulated / lab - 1:+.0%}): it has "
        "neither delayed acknowledgements nor a kernel that shares its CPU with everything else."
    )


def report(records: Sequence[Record]) -> Report:
    """Side by side."""
    demos = [one for one in records if "variant" not in one.parameters]
    crowds = [one for one in records if "variant" in one.parameters]
    tables: list[Table] = []
    goals: list[Goal] = []
    if demos:
        tables.append(_demo_table(demos))
        goals += [_near(demos, "equal_ms", "equal split"), _near(demos, "r_ms", "R decides")]
    if crowds:
        tables.append(_crowd_table(crowds))
        points = max(
            abs(one.result["simulated"]["response_loss"] - one.result["lab"]["response_loss"]) for one in crowds
        )
        goals.append(Goal("crowds: loss within 8 points of the lab's", points <= 0.08, f"{100 * points:.1f} points"))
        share = [one.result["simulated"]["ar_kbps"] / one.result["lab"]["ar_kbps"] for one in crowds]
        goals.append(
            Goal(
                "crowds: AR within 15 % of the lab's",
                all(abs(one - 1) <= 0.15 for one in share),
                f"{min(share) - 1:+.0%} to {max(share) - 1:+.0%}",
            )
        )
    return Report(
        tables=tables,
        goals=goals,
        text=[
            f"Each run of the lab's demo is simulated {SEEDS_A_RUN} times. With the CPU shared evenly one figure of "
            "the demo is fitted: the CPU time of a request, from how many the loaded server answered under the equal "
            "split. In slices (a quota each 100 ms, turns of 1.4 ms in an order that is drawn, 0.3 ms of CPU time a "
            "page as measured without load) nothing is. The crowds are computed from the lab's own settings. "
            "[simulation.md](simulation.md) says what the clients' timers and the order of turns do to the demo.",
            _relief(demos),
            _crowds_without_control(crowds),
        ],
        summary={
            one.key: {side: one.result[side] for side in ("lab", "simulated", "sliced") if side in one.result}
            for one in records
        },
    )


def _each(demos: Sequence[Record], side: str, name: str) -> list[float]:
    if side == "lab":
        return [one.result["lab"][name] for one in demos]
    return [one[name] for run in demos for one in run.result[side]]


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Connect times of the demo, losses and AR of the crowds: lab next to simulation."""
    left, right = figure.subplots(1, 2)
    demos = [one for one in records if "variant" not in one.parameters]
    if demos:
        for offset, side in ((-0.25, "lab"), (0.0, "simulated"), (0.25, "sliced")):
            values = [statistics.fmean(_each(demos, side, name)) for name in ("equal_ms", "r_ms")]
            left.bar([0 + offset, 1 + offset], values, 0.25, label=DEMO_SIDES[side])
        left.set_xticks([0, 1], ["equal split", "R decides"])
        left.set_ylabel("mean connect time, ms")
        left.legend()
    crowds = [one for one in records if "variant" in one.parameters]
    for place, variant in enumerate(CROWD_VARIANTS):
        runs = [one for one in crowds if one.parameters["variant"] == variant]
        for offset, side, colour in ((-0.2, "lab", "C0"), (0.2, "simulated", "C1")):
            if runs:
                value = statistics.fmean(one.result[side]["ar_kbps"] for one in runs) / runs[0].parameters["k"]
                right.bar([place + offset], [value], 0.4, color=colour)
    right.set_xticks(range(len(CROWD_VARIANTS)), CROWD_VARIANTS)
    right.set_ylabel("AR, kbit/s, in the paper's scale")


EXPERIMENT = Experiment(
    name="sim-lab",
    title="The simulation against the lab",
    source="Asked for by this project: a simulation first reproduces what was measured",
    about="The demo (three Apache servers, one of them loaded; equal split, then R as published) and the "
    "network-limited flash crowd, each in the lab and simulated with the same settings and the same figures' "
    "definitions.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
    expected_s=expected_s,
)
