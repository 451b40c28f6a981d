"""Flash crowds for `sim-lab`: each in the lab, and simulated with the lab's own settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from experiments.agreement import PART, percent
from experiments.experiment import Goal, Point, Record, Table, Values
from experiments.intervals import Mean, by_chance, mean_of
from experiments.labruns import LabRuns, below_results, simulated_beside
from sim.lab import simulate_lab
from topo.news.measures import Records, figures
from topo.news.programme import Planned, compressed, planned
from topo.news.records import made, read_records
from topo.news.run import Run, is_done, make_run
from topo.news.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, PRODUCTION, SCENARIOS, SERVER, STATIC, VARIANTS
from topo.news.settings import Settings
from topo.switches import switch_kind

RUNS = "experiments/sim-lab"
"""Of the lab, a directory each."""
FIRST_RUNS = "news/runs"
"""Those of `news-lab`: the first run of each is the same."""
STATIC_40 = next(one for one in STATIC if one.static_per_s == 40)
"""Just below what the slow server answers."""
CROWDS = (
    *((NETWORK, variant) for variant in (NONE, NEWS, HOT_SPOT, PRODUCTION)),
    *((SERVER, variant) for variant in (NONE, STATIC_40, NEWS)),
)
ENDS_S, SIMULATED_S = 30.0, 25.0
"""Seconds, about: what a crowd's lab takes beside its load, and its simulation."""
FIGURES = {
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
UNCONTROLLED = ("ar_kbps", "response_loss", "bystander_goodput_kbps", "bottleneck_used")
"""What is said in words of crowds that nobody limits."""
SIDES = ("simulated", "lab")
LOSS_POINTS, INTERVALS = 8.0, 0.25
"""How near the lab's loss, AR and admitted requests, and alarm are to be come."""


def points(number: int) -> list[Point]:
    """Every crowd once."""
    made: list[Point] = []
    for scenario, variant in CROWDS:
        one = _planned(scenario.name, variant.name)
        settings = one.settings
        parameters = {"scenario": scenario.name, "variant": variant.name, "run": number, **asdict(settings)}
        own = f"{RUNS}/crowd-{one.name.replace('/', '-')}-{number}"
        made.append(
            Point(
                f"crowd {scenario.name} {variant.name} #{number}",
                parameters,
                settings.seconds / settings.k + ENDS_S + SIMULATED_S,
                "lab",
                lab_run=below_results(own if number else f"{FIRST_RUNS}/{one.name}", switch_kind()),
                read_s=SIMULATED_S,
            )
        )
    return made


def is_there(point: Point, labs: LabRuns) -> bool:
    """Whether the lab's run is there."""
    return is_done(_run(_of(point.parameters)), switch_kind(), labs.at(point.lab_run), labs.since)


def measure(point: Point, labs: LabRuns) -> Values:
    """Run a crowd in the lab, or take the run that is there, and simulate it with requests drawn anew in each repeat.

    The lab's repeats all have the first one's requests: they differ by what the machine did.
    """
    one, directory = _of(point.parameters), labs.at(point.lab_run)
    run = _run(one)
    if not is_there(point, labs):
        make_run(run, switch_kind(), directory, lambda _: None)
    again = reseeded(run.settings, point.parameters["run"])
    simulated = simulate_lab(one.scenario, one.variant, again, run.static_per_s)
    return {
        "lab": _figures(read_records(directory)),
        "simulated": _figures(simulated),
        **simulated_beside(made(directory)),
    }


def reseeded(settings: Settings, number: int) -> Settings:
    """Return the settings of a simulated repeat; the first has the lab's own requests."""
    return replace(settings, seed=settings.seed + number)


def _planned(scenario: str, variant: str) -> Planned:
    return compressed(planned(SCENARIOS[scenario], VARIANTS[variant], Settings()), switch_kind())


def _of(parameters: Mapping[str, Any]) -> Planned:
    return _planned(parameters["scenario"], parameters["variant"])


def _run(one: Planned) -> Run:
    return Run(one.scenario, one.variant, one.settings, one.variant.static_per_s)


def _figures(records: Records) -> dict[str, Any]:
    return asdict(figures(records, records.window()))


# -- the report


def name_of(record: Record) -> tuple[str, str]:
    """Return which crowd a record is of: scenario and variant."""
    return record.parameters["scenario"], record.parameters["variant"]


def by_crowd(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """Return repeated runs by crowd, in the order of CROWDS."""
    places = [(scenario.name, variant.name) for scenario, variant in CROWDS]
    return {place: runs for place in places if (runs := [one for one in records if name_of(one) == place])}


def seen(runs: Sequence[Record], side: str, name: str) -> Mean:
    """Return a figure's mean over repeated runs of the lab or of the simulation, in the table's scale."""
    scale = FIGURES[name][2] or 1 / runs[0].parameters["k"]
    return mean_of([value * scale for one in runs if (value := one.result[side][name]) is not None])


def table(records: Sequence[Record]) -> Table:
    """Lab and simulation of each crowd, one below the other."""
    rows = [
        [f"{' '.join(place)}, {side}", *(seen(runs, side, name).text(FIGURES[name][1]) for name in FIGURES)]
        for place, runs in by_crowd(records).items()
        for side in ("lab", "simulated")
    ]
    return Table(["flash crowd", *(label for label, _, _ in FIGURES.values())], rows)


def goals(records: Sequence[Record], scenario: str) -> list[Goal]:
    """Hold the means of a scenario's crowds against the lab's; each goal names the crowd that is furthest off."""
    crowds = {variant: runs for (where, variant), runs in by_crowd(records).items() if where == scenario}
    if not crowds:
        return []

    def off(name: str) -> Mapping[str, Off | None]:
        return {variant: _off(runs, name) for variant, runs in crowds.items()}

    return [
        _goal(f"{scenario}: alarm within {INTERVALS:g} intervals of the lab's", off("detected_after_intervals")),
        _goal(f"{scenario}: loss within {LOSS_POINTS:g} points of the lab's", off("response_loss")),
        _goal(f"{scenario}: AR within {PART:.0%} of the lab's", off("ar_kbps")),
        _goal(f"{scenario}: admitted requests within {PART:.0%} of the lab's", off("admitted_per_s")),
    ]


Off = tuple[float, bool, str]
"""How far off a figure is, whether that is near enough, and both in words."""


def _off(runs: Sequence[Record], name: str) -> Off | None:
    """Return how far a figure is off; None where neither side has it."""
    lab, simulated = (seen(runs, side, name).value for side in ("lab", "simulated"))
    if math.isnan(lab) and math.isnan(simulated):
        return None
    if math.isnan(lab) or math.isnan(simulated):
        return math.inf, False, "only one of both has it"
    if name == "response_loss":
        return abs(simulated - lab), abs(simulated - lab) <= LOSS_POINTS, f"{simulated - lab:+.1f} points"
    if name == "detected_after_intervals":
        return abs(simulated - lab), abs(simulated - lab) <= INTERVALS, f"{simulated - lab:+.2f}"
    if lab == 0:
        return (0.0, True, "+0%") if simulated == 0 else (math.inf, False, f"{simulated:g} instead of 0")
    part = simulated / lab - 1
    return abs(part), abs(part) <= PART, percent(part)


def _goal(text: str, off: Mapping[str, Off | None]) -> Goal:
    known = {variant: one for variant, one in off.items() if one is not None}
    if not known:
        return Goal(text, None, "-")
    missed = {variant: one for variant, one in known.items() if not one[1]}
    worst = max(known, key=lambda variant: known[variant][0])
    shown = missed or {worst: known[worst]}
    return Goal(text, not missed, ", ".join(f"{said} ({variant})" for variant, (_, _, said) in shown.items()))


def text(records: Sequence[Record]) -> str:
    """Say in what crowds differ, what the simulation leaves out, and what repeated runs have in common."""
    return " ".join(one for one in (_uncontrolled(records), _slow_server(records), _repeats(records)) if one)


def _uncontrolled(records: Sequence[Record]) -> str:
    """Say in what the crowds that nobody limits differ from the lab's by more than chance, and what is left out."""
    crowds = by_crowd(records)
    said = [
        f"{scenario.name} {', '.join(_beside(runs, name) for name in UNCONTROLLED)}"
        for scenario in (NETWORK, SERVER)
        if (runs := crowds.get((scenario.name, NONE.name))) and any(_differs(runs, name) for name in UNCONTROLLED)
    ]
    if not said:
        return ""
    return (
        f"Without control, simulated and in the lab: {'; '.join(said)}. The simulation has neither delayed "
        "acknowledgements nor a kernel that shares its CPU with everything else; what either does to it is not known."
    )


def _beside(runs: Sequence[Record], name: str) -> str:
    label, digits, _ = FIGURES[name]
    return f"{label} {' and '.join(seen(runs, side, name).text(digits) for side in SIDES)}"


def _differs(runs: Sequence[Record], name: str) -> bool:
    simulated, lab = (seen(runs, side, name) for side in SIDES)
    return simulated.value != lab.value and not by_chance(simulated, lab)


def _repeats(records: Sequence[Record]) -> str:
    """Say what the intervals of repeated crowds are of."""
    if not any(len(runs) > 1 for runs in by_crowd(records).values()):
        return ""
    return (
        "A crowd's runs in the lab all have the same requests, so that their intervals are of what the machine did; "
        "the simulated ones have requests of their own each, and their intervals are of that."
    )


def _slow_server(records: Sequence[Record]) -> str:
    """Say so where the simulated slow server does more than the lab's, and what it leaves out."""
    more: list[str] = []
    for (scenario, variant), runs in by_crowd(records).items():
        lab, simulated = (seen(runs, side, "admitted_per_s").value for side in ("lab", "simulated"))
        if scenario == SERVER.name and simulated > (1 + PART) * lab:
            more.append(f"{percent(simulated / lab - 1)} ({variant})")
    if not more:
        return ""
    return (
        f"The simulated slow server lets more connect than the lab's ({', '.join(more)}). It has CPU time for the "
        "answers' turns alone, and no memory to run out of; which of the two matters is not known."
    )
