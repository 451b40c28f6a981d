"""The simulation held against the lab at the lab's size: the demo, and flash crowds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import mean_of
from experiments.webpool import quiet
from sim.demo import EQUAL_S, Phases, simulate_demo, work_s
from sim.lab import simulate_lab
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

DEMO_SEEDS = (1, 2, 3, 4, 5)
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
    """The demo and three crowds, once; the full form makes each three times."""
    settings = NETWORK.settle(Settings())
    made: list[Point] = []
    for number in range(1 if quick else 3):
        made.append(Point(f"demo #{number}", {"seeds": list(DEMO_SEEDS), "run": number}, 200.0))
        for variant in CROWD_VARIANTS:
            parameters = {"variant": variant, "run": number, **settings.as_dict()}
            made.append(Point(f"crowd {variant} #{number}", parameters, settings.seconds / settings.k + 60))
    return made


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
    directory = REPOSITORY / "results/experiments/sim-lab" / f"demo-{number}"
    if not (directory / "summary.json").exists():
        run_demo(DemoSettings(), directory, quiet(say))
    lab: Mapping[str, Any] = json.loads((directory / "summary.json").read_text())
    equal, by_r = lab["phases"]["equal"], lab["phases"]["r"]
    work = work_s(equal["per_server"]["s3"]["synack"] / (EQUAL_S + 5))
    runs = [simulate_demo(equal["offered_per_s"], work, seed) for seed in DEMO_SEEDS]
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
        },
        "simulated": [demo_figures(one) for one in runs],
        "ratios": [[one.time_s - EQUAL_S, *one.ratios.values()] for one in runs[0].run.decisions[0]],
    }


def demo_figures(phases: Phases) -> dict[str, float]:
    """The demo's figures of a simulated run."""
    return {
        "equal_ms": _connect_ms(phases, "equal"),
        "r_ms": _connect_ms(phases, "by_r"),
        "equal_failed": sum(one.done_s is None for one in phases.equal) / len(phases.equal),
        "equal_syn": (sum(one.syns for one in phases.equal) - 2 * len(phases.equal) / 3) / len(phases.equal),
        "loaded_ratio": phases.run.decisions[0][-1].ratios[2],
        "weight_changes": phases.run.weight_changes,
    }


def _connect_ms(phases: Phases, name: str) -> float:
    connections = phases.equal if name == "equal" else phases.by_r
    return 1000 * statistics.fmean(one.connect_s for one in connections if one.connect_s is not None)


# -- crowds


def crowd(variant: str, number: int) -> Values:
    """Run a crowd in the lab, or take the run that is there, and simulate it."""
    settings = NETWORK.settle(Settings())
    directory = REPOSITORY / "results/experiments/sim-lab" / f"crowd-{variant}-{number}"
    run = Run(NETWORK, VARIANTS[variant], settings)
    if not is_done(run, switch_kind(), directory):
        make_run(run, switch_kind(), directory, lambda _: None)
    return {
        "lab": _crowd_figures(read_records(directory)),
        "simulated": _crowd_figures(simulate_lab(NETWORK, VARIANTS[variant], settings)),
    }


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
}


def _demo_table(runs: Sequence[Record]) -> Table:
    rows: list[list[str]] = []
    for name, (label, digits) in DEMO_ROWS.items():
        lab = mean_of([one.result["lab"][name] for one in runs])
        simulated = mean_of([one[name] for run in runs for one in run.result["simulated"]])
        rows.append([label, lab.text(digits), simulated.text(digits)])
    return Table(["the demo", "lab", "simulated"], rows)


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


def report(records: Sequence[Record]) -> Report:
    """Side by side."""
    demos = [one for one in records if "variant" not in one.parameters]
    crowds = [one for one in records if "variant" in one.parameters]
    tables: list[Table] = []
    goals: list[Goal] = []
    if demos:
        tables.append(_demo_table(demos))
        lab = statistics.fmean(one.result["lab"]["equal_ms"] for one in demos)
        simulated = statistics.fmean(one["equal_ms"] for run in demos for one in run.result["simulated"])
        goals.append(
            Goal(
                "equal split: connect time within 15 % of the lab's",
                abs(simulated / lab - 1) <= 0.15,
                f"{simulated / lab - 1:+.0%}",
            )
        )
    if crowds:
        tables.append(_crowd_table(crowds))
        apart = [abs(one.result["simulated"]["response_loss"] - one.result["lab"]["response_loss"]) for one in crowds]
        goals.append(
            Goal("crowds: loss within 8 points of the lab's", max(apart) <= 0.08, f"{100 * max(apart):.1f} points")
        )
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
            "One figure of the demo is fitted: the CPU time of a request, from how many the loaded server "
            "answered under "
            "the equal split. Everything else, the crowds entirely, is computed from the lab's own settings. "
            "In the lab R "
            "takes longer to relieve the loaded server: the kernel grants its CPU limit in slices of 100 ms, and gives "
            "`stress` and the workers turns, where the simulated CPU is shared smoothly. For the same reason healthy "
            "servers lose a SYN now and then in the lab and never here. Of the crowds without control the "
            "simulation's TCP keeps a little more alive: it has neither delayed acknowledgements nor a kernel "
            "that shares its CPU with everything else.",
        ],
        summary={one.key: {side: one.result[side] for side in ("lab", "simulated")} for one in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Connect times of the demo, losses and AR of the crowds: lab next to simulation."""
    left, right = figure.subplots(1, 2)
    demos = [one for one in records if "variant" not in one.parameters]
    if demos:
        for offset, side in ((-0.2, "lab"), (0.2, "simulated")):
            values = [
                statistics.fmean(
                    value
                    for one in demos
                    for value in (
                        [one.result["lab"][name]] if side == "lab" else [run[name] for run in one.result["simulated"]]
                    )
                )
                for name in ("equal_ms", "r_ms")
            ]
            left.bar([0 + offset, 1 + offset], values, 0.4, label=side)
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
)
