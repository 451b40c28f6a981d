"""Fig. 6 of paper 000: ratios against time, in the lab and simulated; maps of Delta and windows, simulated."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.agreement import PART, percent
from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, by_chance, chance, mean_of
from experiments.ratios import NEAR, Course, course
from experiments.simpool import GIVEN_UP_S, LOADED, simulated
from experiments.switchload import load_sentence, switch_sentence
from experiments.variants import PERIOD_S, WINDOW_S
from experiments.webpool import pool, quiet
from sim.demo import PAGE_S
from topo.network import Lab
from topo.switches import switch_kind
from workload.load import Load
from workload.plan import SERVER_CPUS, SERVER_NAMES, Balance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RATE_PER_S = 120.0
"""Of the run that is made both in the lab and by simulation."""

LAB_S, QUICK_LAB_S = 90.0, 45.0
REPETITIONS, SIMULATIONS = 6, 30
"""Of that run, in the full form: its connect time hangs on the few seconds in which a queue is full."""
CPU = "quota, EEVDF, clients that close"
"""How the simulation grants CPU time: a run made otherwise is another run."""

MAP_PERIOD_S = 10.0
MAP_S, QUICK_MAP_S = 1800.0, 600.0
DELTAS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9)
WINDOWS_S = (20.0, 50.0, 100.0, 200.0, 400.0)
QUICK_DELTAS = (0.05, 0.1, 0.4, 0.9)
QUICK_WINDOWS_S = (20.0, 200.0)
QUICK_SEEDS, SEEDS = (1, 2, 3), (1, 2, 3, 4, 5)
PAPERS_OWN = (0.1, 200.0)
HALVED = 0.5
"""A ratio below so much of an equal split's has clearly fallen."""
STARVED = 0.1
"""A server below so much of an equal split has next to nothing to do."""
STILL = 0.01
"""A ratio whose standard deviation is below this does not oscillate."""


@dataclass(frozen=True, slots=True)
class Case:
    """A load of the map: requests a second, and the CPU time of each in seconds."""

    rate_per_s: float
    work_s: float

    @property
    def healthy_per_s(self) -> float:
        """What the servers can do without the loaded one."""
        return (len(SERVER_NAMES) - 1) * SERVER_CPUS / self.work_s


ROOM, SCARCE = "room to spare", "near capacity"
CASES = {ROOM: Case(RATE_PER_S, PAGE_S), SCARCE: Case(70.0, 15 * PAGE_S)}
"""Near capacity the healthy servers are just not enough, so that one overflows when the traffic moves to it.  Requests
of fifteen times the cost, so that this takes a fifteenth of them."""


def points(quick: bool) -> Sequence[Point]:
    """The lab, repeated in the full form; the same by simulation, with its arrivals; the map. Both repeated."""
    seconds = QUICK_LAB_S if quick else LAB_S
    both: dict[str, Any] = {
        "rate_per_s": RATE_PER_S,
        "seconds": seconds,
        "period_s": PERIOD_S,
        "window_s": WINDOW_S,
        "delta": 0.1,
    }
    made = [
        Point(f"lab {seconds:g} s #{number}", {**both, "where": "lab"}, seconds + 15, group=f"lab {number}")
        for number in range(1 if quick else REPETITIONS)
    ]
    seeds = QUICK_SEEDS if quick else SEEDS
    made += [
        Point(f"sim {seconds:g} s #{seed}", {**both, "where": "sim", "cpu": CPU, "httperf": True, "seed": seed}, 1)
        for seed in (seeds if quick else range(1, SIMULATIONS + 1))
    ]
    deltas, windows = (QUICK_DELTAS, QUICK_WINDOWS_S) if quick else (DELTAS, WINDOWS_S)
    made += [
        _cell_of_map(case, delta, window, QUICK_MAP_S if quick else MAP_S, seed)
        for seed in seeds
        for case in CASES
        for delta in deltas
        for window in windows
    ]
    return made


def _cell_of_map(case: str, delta: float, window_s: float, seconds: float, seed: int) -> Point:
    parameters = {
        "where": "map",
        "case": case,
        "rate_per_s": CASES[case].rate_per_s,
        "work_s": CASES[case].work_s,
        "seconds": seconds,
        "period_s": MAP_PERIOD_S,
        "window_s": window_s,
        "delta": delta,
        "cpu": CPU,
        "seed": seed,
    }
    return Point(f"map {case} Delta {delta:g} window {window_s:g} s {seconds:g} s #{seed}", parameters, seconds / 400)


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open the lab."""
    del group
    with pool(Lab(switch_kind(), Balance("fixed", PERIOD_S, WINDOW_S), say=quiet(say))) as one:
        one.lab.break_server(LOADED)
        one.lab.controller.set_mode("paper")
        yield lambda point: one.run(Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S))


def compute(point: Point) -> Values:
    """Simulate."""
    return simulated(point.parameters)


def courses(record: Record) -> Sequence[Course]:
    """Return the courses of the servers' ratios while there was load; the last one is the loaded server's."""
    rows = [row for row in record.result["ratios"] if row[0] <= record.parameters["seconds"]]
    times = [row[0] for row in rows]
    return [course(times, [row[number] for row in rows]) for number in range(1, 1 + len(SERVER_NAMES))]


def _of(records: Sequence[Record], where: str) -> list[Record]:
    return [one for one in records if one.parameters["where"] == where]


@dataclass(frozen=True, slots=True)
class Seen:
    """What repeated runs showed of the ratios and of the clients; times in s, connect times in ms."""

    settled: Sequence[float]
    """From when on every ratio stays near its level."""
    level: Mean
    """Of the loaded server."""
    swing: Mean
    """Of the ratio that swings most."""
    reversals: Mean
    """Of the ratio that turns round most often, in parts of the decisions."""
    connect: Mean
    late: Mean
    """The last third's connect time; NaN where it was not measured."""

    @property
    def cells(self) -> list[str]:
        """As cells of a table."""
        never = sum(map(math.isinf, self.settled))
        settled = f"never in {never} of {len(self.settled)}" if never else mean_of(self.settled).text(0)
        turns = mean_of([100 * self.reversals.value]).text(0) + " %"
        return [settled, self.level.text(3), self.swing.text(3), turns, self.connect.text(0), self.late.text(0)]


HEADING = [
    "settled (s)",
    "loaded server's ratio then",
    "largest swing",
    "reversals",
    "connect, mean (ms)",
    "in the last third (ms)",
]


def seen(records: Sequence[Record]) -> Seen:
    """Read repeated runs."""
    of_runs = [courses(one) for one in records]
    return Seen(
        [max(one.settled_s for one in run) for run in of_runs],
        mean_of([run[-1].level for run in of_runs]),
        mean_of([max(one.swing for one in run) for run in of_runs]),
        mean_of([max(one.reversals for one in run) for run in of_runs]),
        mean_of([one.result["connect"]["mean_ms"] for one in records]),
        mean_of([one.result["late"]["mean_ms"] for one in records if "late" in one.result]),
    )


Cells = Mapping[tuple[float, float], Seen]
"""By Delta and window."""


def cells_of_map(records: Sequence[Record], case: str) -> Cells:
    """Return what was seen in each cell of a case's map."""
    cells: dict[tuple[float, float], list[Record]] = {}
    for one in _of(records, "map"):
        if one.parameters["case"] == case:
            cells.setdefault((one.parameters["delta"], one.parameters["window_s"]), []).append(one)
    return {place: seen(cells[place]) for place in sorted(cells)}


def _agreement(records: Sequence[Record]) -> list[Goal]:
    """Hold the simulation's ratio and connect time against the lab's: one may agree without the other."""
    ratio = "the simulation agrees with the lab: the loaded server's ratio within 0.05"
    time = f"the simulation agrees with the lab: the mean connect time within {PART:.0%} of the lab's"
    lab, simulated_too = _of(records, "lab"), _of(records, "sim")
    if not lab or not simulated_too:
        return [Goal(ratio, None, "-"), Goal(time, None, "-")]
    first, second = seen(lab), seen(simulated_too)
    off = abs(first.level.value - second.level.value)
    part = second.connect.value / first.connect.value - 1
    return [
        Goal(ratio, off <= NEAR, f"{first.level.text(3)} in the lab, {second.level.text(3)} simulated"),
        Goal(
            time,
            abs(part) <= PART,
            f"{first.connect.text(0)} ms in the lab, {second.connect.text(0)} simulated ({percent(part)})"
            f"{chance(first.connect, second.connect)}",
        ),
    ]


def _connect_times(lab: Sequence[Record], simulated_too: Sequence[Record], *, mapped: bool) -> str:
    """Say where the connect times of lab and simulation are further apart, why, and what it means for the map."""
    if not lab or not simulated_too:
        return ""
    first, second = seen(lab).connect, seen(simulated_too).connect
    if abs(second.value / first.value - 1) <= PART:
        return ""
    given_up = [sum(one.result["connect"]["given_up"] for one in runs) for runs in (lab, simulated_too)]
    begun = [sum(one.result["connect"]["begun"] for one in runs) for runs in (lab, simulated_too)]
    longer = first.value > second.value
    said = [
        f"Connecting takes {'longer' if longer else 'shorter'} in the lab ({first.text(0)} ms) than simulated "
        f"({second.text(0)} ms){chance(first, second)}; given up were {given_up[0]} of {begun[0]} and {given_up[1]} of "
        f"{begun[1]}. A SYN that is lost costs a second or more, so that the few that the loaded server loses before "
        "its ratio has fallen make the mean, and they differ from run to run; `sim-lab` compares how evenly it answers "
        "in both."
    ]
    if mapped:
        much = max(first.value, second.value) / max(1e-9, min(first.value, second.value))
        said.append(
            f"For the maps this means: with {ROOM} their connect times are made by the same few SYNs, and are to be "
            f"taken as {'shorter' if longer else 'longer'} than a lab would have them, by a factor that was "
            f"{much:.1f} here. They rank the cells; they do not say how many milliseconds a cell costs. How ratios "
            f"move rests on the ratios' agreement. {SCARCE.capitalize()} no lab was held against the simulation."
        )
    return " ".join(said)


def _falls(lab: Sequence[Record]) -> str:
    """Hold the loaded server's ratio against the paper's figure."""
    if not lab:
        return ""
    level = seen(lab).level
    falls = level.value < HALVED / len(SERVER_NAMES)
    return (
        f"The paper's Fig. 6 shows the loaded server's ratio fall with time, from a third on. In the lab it "
        f"{'falls, too' if falls else 'does not fall as clearly'}: from {1 / len(SERVER_NAMES):.3f} to {level.text(3)}."
    )


def _best(maps: Mapping[str, Cells]) -> str:
    """Answer the paper's question, by the mean connect time over the whole run."""
    if not maps:
        return ""
    said = ["The paper leaves open which Delta is best. By the mean connect time over the whole simulated run it is:"]
    for case, cells in maps.items():
        best = min(cells, key=lambda place: cells[place].connect.value)
        close = sum(by_chance(one.connect, cells[best].connect) for place, one in cells.items() if place != best)
        others = f"; {close} of the other {len(cells) - 1} cells are no further from it than chance" if close else ""
        own = f"; the paper's own choice, {_cell(PAPERS_OWN, cells)}" if PAPERS_OWN in cells else ""
        said.append(f"{case}, Delta = {_cell(best, cells)}{others}{own}.")
    both = _of_both(maps) if len(maps) == len(CASES) else ""
    return " ".join([*said, both]).strip()


def _of_both(maps: Mapping[str, Cells]) -> str:
    """Name the cell that is furthest from the best of neither case: what a pool wants that knows either load."""
    least = {case: min(one.connect.value for one in cells.values()) for case, cells in maps.items()}
    common = set[tuple[float, float]].intersection(*(set(cells) for cells in maps.values()))
    if not common:
        return ""
    times = {place: {case: maps[case][place].connect.value / least[case] for case in maps} for place in common}
    chosen = min(sorted(common), key=lambda place: max(times[place].values()))
    costs = ", ".join(f"{cost:.1f} {case}" for case, cost in times[chosen].items())
    return (
        f"For a pool that may have either load, Delta = {chosen[0]:g} and a window of {chosen[1]:g} s are furthest "
        f"from the best of neither, by how many times as long connecting takes ({costs}): a factor on all times of a "
        "map changes nothing in that."
    )


def _cell(place: tuple[float, float], cells: Cells) -> str:
    delta, window_s = place
    settled, _, swing, turns, connect, late = cells[place].cells
    when = f"settled {settled}" if settled.startswith("never") else f"settled after {settled} s"
    return (
        f"{delta:g} and a window of {window_s:g} s, with {connect} ms ({late} in the last third, {when}, swing "
        f"{swing}, reversals {turns})"
    )


def _starved(maps: Mapping[str, Cells]) -> str:
    """Say what the largest Delta leaves to the loaded server, and when that is no harm."""
    if not (cells := maps.get(ROOM, {})):
        return ""
    largest = max(delta for delta, _ in cells)
    of_largest = [one.level.value for (delta, _), one in cells.items() if delta == largest]
    if max(of_largest) > STARVED / len(SERVER_NAMES):
        return ""
    case = CASES[ROOM]
    return (
        f"A high Delta starves the loaded server: with {largest:g} and {ROOM} it is left with {min(of_largest):.3f} to "
        f"{max(of_largest):.3f} of the requests at every window, though it could serve some. That costs nothing there, "
        f"for the others can do {case.healthy_per_s:.0f}/s and {case.rate_per_s:g}/s are asked for; but in paper mode "
        "a server that is repaired does not get its share back: it gains only its part of what another gives whose R "
        "is the largest."
    )


def _oscillation(maps: Mapping[str, Cells]) -> str:
    """Say where ratios swing to and fro, which section 4.2 of the paper warns of."""
    if not maps:
        return ""
    said = ["Section 4.2 of the paper expects ratios to oscillate when Delta is near 1."]
    return " ".join([*said, *(_swings(case, cells) for case, cells in maps.items())])


def _swings(case: str, cells: Cells) -> str:
    most = max(one.swing.value for one in cells.values())
    never = sum(any(map(math.isinf, one.settled)) for one in cells.values())
    settles = f"not every run settles in {never} of {len(cells)} cells" if never else "every run settles"
    if most < STILL:
        roomy = CASES[case].healthy_per_s > CASES[case].rate_per_s
        why = ", since no server overflows by what moves to it" if roomy else ""
        return f"{case.capitalize()}: nothing swings by more than {most:.3f} in the end{why}; {settles}."
    deltas = sorted({delta for delta, _ in cells})
    of_delta = {delta: [one for (other, _), one in cells.items() if other == delta] for delta in deltas}
    swings = [mean_of([one.swing.value for one in of_delta[delta]]).value for delta in deltas]
    turns = [mean_of([one.reversals.value for one in of_delta[delta]]).value for delta in deltas]
    late = [mean_of([one.late.value for one in of_delta[delta]]).value for delta in deltas]
    by_delta = ", ".join(
        f"{swing:.3f}, {turn:.0%} and {ms:.0f} ms with {delta:g}"
        for delta, swing, turn, ms in zip(deltas, swings, turns, late, strict=True)
    )
    so = "as the paper expects" if swings[-1] == max(swings) > 2 * swings[0] else "not more the larger Delta is"
    return (
        f"{case.capitalize()}: ratios swing {so}; largest swing, reversals and the last third's connect time are, as "
        f"means over the windows, {by_delta}; {settles}."
    )


def report(records: Sequence[Record]) -> Report:
    """Lab beside simulation, and the maps."""
    sides = {"lab": _of(records, "lab"), "simulated": _of(records, "sim")}
    rows = [
        [f"{name}, {len(runs)} {'run' if len(runs) == 1 else 'runs'}", *seen(runs).cells]
        for name, runs in sides.items()
        if runs
    ]
    maps = {case: cells for case in CASES if (cells := cells_of_map(records, case))}
    return Report(
        tables=[
            Table(["run", *HEADING], rows),
            *(
                Table(
                    [f"{case}: Delta", "window (s)", *HEADING],
                    [[f"{delta:g}", f"{window:g}", *one.cells] for (delta, window), one in cells.items()],
                )
                for case, cells in maps.items()
            ),
        ],
        goals=_agreement(records),
        text=[
            f"Lab and simulation side by side have T = {PERIOD_S:g} s and a window of {WINDOW_S:g} s; the maps have "
            f"the paper's T = {MAP_PERIOD_S:g} s. Means with 95 % intervals where there are several runs. Settled: "
            "from when on every server's ratio stays within 0.05 of its mean over the last third; largest swing: the "
            "standard deviation there of the ratio that swings most; reversals: in how many of the decisions there "
            "the ratio that does so most often moves the other way than before. Connect times: what was given up after "
            f"{GIVEN_UP_S:g} s counts as that. Nothing of the simulation is fitted to what is compared.",
            _falls(sides["lab"]),
            _loads(maps),
            _best(maps),
            _starved(maps),
            _oscillation(maps),
            _connect_times(sides["lab"], sides["simulated"], mapped=bool(maps)),
            f"{switch_sentence(sides['lab'])} {load_sentence(sides['lab'])}".strip(),
        ],
    )


def _loads(maps: Mapping[str, Cells]) -> str:
    said = [
        f"{case}, {CASES[case].rate_per_s:g} requests/s of {1000 * CASES[case].work_s:g} ms of CPU time, of which the "
        f"servers without `stress` can do {CASES[case].healthy_per_s:.0f}/s"
        for case in maps
    ]
    return f"The maps have these loads: {'; '.join(said)}." if said else ""


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Ratios against time, in lab and simulation and where they oscillate; the maps, by Delta and window."""
    (ratios, *connects), (oscillation, *swings) = figure.subplots(2, 1 + len(CASES))
    for where, style in (("lab", "-"), ("sim", ":")):
        for one in _of(records, where)[:1]:
            _draw_ratios(ratios, one, style, where)
    ratios.set_title("lab (-) and simulation (:)", fontsize="small")
    for one in _swinging(records):
        _draw_ratios(oscillation, one, "-", "")
        delta, window = one.parameters["delta"], one.parameters["window_s"]
        oscillation.set_title(f"{SCARCE}, Delta {delta:g}, window {window:g} s", fontsize="small")
    for case, above, below in zip(CASES, connects, swings, strict=True):
        _draw_map(above, below, cells_of_map(records, case), case)
    for one in (ratios, oscillation, *connects, *swings):
        one.grid(alpha=0.3)
        one.tick_params(labelsize="x-small")


def _swinging(records: Sequence[Record]) -> list[Record]:
    """Return the run near capacity with the largest Delta and the shortest window."""
    runs = [one for one in _of(records, "map") if one.parameters["case"] == SCARCE]
    return sorted(runs, key=lambda one: (-one.parameters["delta"], one.parameters["window_s"]))[:1]


def _draw_ratios(axes: Axes, record: Record, style: str, where: str) -> None:
    rows = record.result["ratios"]
    for number, name in enumerate(SERVER_NAMES, 1):
        label = f"{name}{' (loaded)' if name == LOADED else ''}" if where != "sim" else None
        axes.plot([row[0] for row in rows], [row[number] for row in rows], style, color=f"C{number}", lw=1, label=label)
    axes.set_xlabel("time (s)", fontsize="x-small")
    axes.set_ylabel("ratio", fontsize="x-small")
    axes.set_ylim(0, None)
    if where != "sim":
        axes.legend(fontsize="xx-small")


def _draw_map(above: Axes, below: Axes, cells: Cells, case: str) -> None:
    """Connect times of the whole run and (dashed) of its last third; largest swings and (dotted) reversals."""
    for number, window in enumerate(sorted({place[1] for place in cells})):
        of_window = {delta: one for (delta, other), one in cells.items() if other == window}
        deltas, colour = list(of_window), f"C{number}"
        values = [one.connect.value for one in of_window.values()]
        bars = [one.connect.bar for one in of_window.values()]
        above.errorbar(deltas, values, yerr=bars, fmt="o-", ms=3, lw=1, color=colour, label=f"window {window:g} s")
        above.plot(deltas, [one.late.value for one in of_window.values()], "--", lw=1, color=colour)
        below.plot(deltas, [one.swing.value for one in of_window.values()], "o-", ms=3, lw=1, color=colour)
        below.plot(deltas, [one.reversals.value for one in of_window.values()], ":", lw=1, color=colour)
    above.set_title(f"{case}: connect (ms), -- last third", fontsize="small")
    above.set_yscale("log")
    below.set_title("largest swing, : reversals", fontsize="small")
    below.set_ylim(0, 0.6)
    below.set_xlabel("Delta", fontsize="x-small")
    if cells:
        above.legend(fontsize="xx-small")


EXPERIMENT = Experiment(
    name="r-fig6",
    title="The ratios against time; Delta and the window",
    source="Paper 000, Fig. 6 and section 4.2",
    about=f"Three servers, one loaded, {RATE_PER_S:g} requests/s, R in paper mode from equal ratios: in the lab, the "
    "same by simulation (`sim/`, with the controller's own algorithms), and by simulation for Delta from 0.02 to 0.9 "
    f"and windows from 20 to 400 s: at {RATE_PER_S:g} requests/s, and near the pool's capacity.",
    points=points,
    place=place,
    compute=compute,
    report=report,
    draw=draw,
    needs_root=True,
)
