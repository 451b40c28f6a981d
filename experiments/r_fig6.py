"""Fig. 6 of paper 000: ratios against time, in the lab and simulated; a map of Delta and windows, simulated."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, by_chance, mean_of
from experiments.ratios import NEAR, Course, course
from experiments.simpool import GIVEN_UP_S, LOADED, simulated
from experiments.switchload import load_sentence, switch_sentence
from experiments.webpool import pool, quiet
from topo.httperf import Load
from topo.network import Lab
from topo.plan import SERVER_NAMES, Balance
from topo.switches import switch_kind

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE_PER_S = 120.0
PERIOD_S, WINDOW_S = 1.0, 10.0
"""Of the run that is made both in the lab and by simulation; the map has the paper's period."""

LAB_S, QUICK_LAB_S = 90.0, 45.0
REPETITIONS = 3
CPU = "slices"
"""How the simulation grants the CPU limit: a run made otherwise is another run."""

MAP_PERIOD_S = 10.0
MAP_S, QUICK_MAP_S = 1800.0, 900.0
DELTAS = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.9)
WINDOWS_S = (20.0, 50.0, 100.0, 200.0, 400.0)
QUICK_DELTAS = (0.05, 0.1, 0.4, 0.9)
QUICK_WINDOWS_S = (20.0, 200.0)
SEEDS = (1, 2, 3)
PAPERS_OWN = (0.1, 200.0)
HALVED = 0.5
"""A ratio below so much of an equal split's has clearly fallen."""
STILL = 0.01
"""A ratio whose standard deviation is below this does not oscillate."""
APART = 1.5
"""Connect times differ where one is more than so many times the other."""


def points(quick: bool) -> Sequence[Point]:
    """The lab, repeated in the full form; the same by simulation, and the map, both repeated."""
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
    made += [
        Point(f"sim {seconds:g} s #{seed}", {**both, "where": "sim", "cpu": CPU, "seed": seed}, 1) for seed in SEEDS
    ]
    length = QUICK_MAP_S if quick else MAP_S
    for seed in SEEDS:
        for delta in QUICK_DELTAS if quick else DELTAS:
            for window in QUICK_WINDOWS_S if quick else WINDOWS_S:
                parameters = {
                    "where": "map",
                    "rate_per_s": RATE_PER_S,
                    "seconds": length,
                    "period_s": MAP_PERIOD_S,
                    "window_s": window,
                    "delta": delta,
                    "cpu": CPU,
                    "seed": seed,
                }
                key = f"map Delta {delta:g} window {window:g} s {length:g} s #{seed}"
                made.append(Point(key, parameters, length / 400))
    return made


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


def loaded_course(record: Record) -> Course:
    """Return the course of the loaded server's ratio while there was load."""
    rows = [row for row in record.result["ratios"] if row[0] <= record.parameters["seconds"]]
    return course([row[0] for row in rows], [row[-1] for row in rows])


def _of(records: Sequence[Record], where: str) -> list[Record]:
    return [one for one in records if one.parameters["where"] == where]


@dataclass(frozen=True, slots=True)
class Seen:
    """What repeated runs showed of the loaded server's ratio and of the clients; times in s, connect times in ms."""

    settled: Sequence[float]
    level: Mean
    swing: Mean
    connect: Mean

    @property
    def cells(self) -> list[str]:
        """As cells of a table."""
        never = sum(map(math.isinf, self.settled))
        settled = f"never in {never} of {len(self.settled)}" if never else mean_of(self.settled).text(0)
        return [settled, self.level.text(3), self.swing.text(3), self.connect.text(0)]


def seen(records: Sequence[Record]) -> Seen:
    """Read repeated runs."""
    courses = [loaded_course(one) for one in records]
    return Seen(
        [one.settled_s for one in courses],
        mean_of([one.level for one in courses]),
        mean_of([one.swing for one in courses]),
        mean_of([one.result["connect"]["mean_ms"] for one in records]),
    )


def cells_of_map(records: Sequence[Record]) -> dict[tuple[float, float], Seen]:
    """Return what was seen in each cell of the map: by Delta and window."""
    cells: dict[tuple[float, float], list[Record]] = {}
    for one in _of(records, "map"):
        cells.setdefault((one.parameters["delta"], one.parameters["window_s"]), []).append(one)
    return {place: seen(cells[place]) for place in sorted(cells)}


def _agreement(records: Sequence[Record]) -> Goal:
    text = "the simulation agrees with the lab: the loaded server's ratio within 0.05"
    lab, simulated_too = _of(records, "lab"), _of(records, "sim")
    if not lab or not simulated_too:
        return Goal(text, None, "-")
    first, second = seen(lab).level, seen(simulated_too).level
    near = abs(first.value - second.value) <= NEAR
    return Goal(text, near, f"{first.text(3)} in the lab, {second.text(3)} simulated")


def _connect_times(lab: Sequence[Record], simulated_too: Sequence[Record]) -> str:
    """Say so where the connect times of lab and simulation are further apart than the ratios suggest."""
    if not lab or not simulated_too:
        return ""
    first, second = seen(lab).connect, seen(simulated_too).connect
    if 1 / APART < first.value / second.value < APART:
        return ""
    given_up = [sum(one.result["connect"]["given_up"] for one in runs) for runs in (lab, simulated_too)]
    begun = [sum(one.result["connect"]["begun"] for one in runs) for runs in (lab, simulated_too)]
    more = "longer" if first.value > second.value else "shorter"
    return (
        f"Connecting takes {more} in the lab ({first.text(0)} ms) than simulated ({second.text(0)} ms); given up were "
        f"{given_up[0]} of {begun[0]} and {given_up[1]} of {begun[1]}. A SYN that is lost costs a second or more, so "
        "that the few that the loaded server loses before its ratio has fallen make the mean; `sim-lab` compares how "
        "evenly it answers in both."
    )


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


def _best(cells: Mapping[tuple[float, float], Seen]) -> str:
    """Answer the paper's question, by the mean connect time over the whole run."""
    if not cells:
        return ""
    best = min(cells, key=lambda place: cells[place].connect.value)
    close = sum(by_chance(one.connect, cells[best].connect) for place, one in cells.items() if place != best)
    said = [
        "The paper leaves open which Delta is best. By the simulation, the mean connect time over the whole run is "
        f"least with Delta = {best[0]:g} and a window of {best[1]:g} s: {_cell(cells[best])}."
    ]
    if close:
        said.append(f"{close} of the other {len(cells) - 1} cells are no further from it than chance.")
    if PAPERS_OWN in cells:
        said.append(f"The paper's own choice, 0.1 and 200 s, comes to {_cell(cells[PAPERS_OWN])}.")
    if best[0] == max(delta for delta, _ in cells):
        said.append(
            "That is the largest Delta of the map. One server is loaded all the time here, and a large Delta moves as "
            "much when a healthy server loses a SYN by chance: what that costs the map does not show."
        )
    return " ".join(said)


def _cell(one: Seen) -> str:
    settled, _, swing, connect = one.cells
    return f"{connect} ms, settled after {settled} s, swing {swing}"


def _oscillation(cells: Mapping[tuple[float, float], Seen]) -> str:
    """Say where the loaded server's ratio swings most."""
    if not cells:
        return ""
    most = max(cells, key=lambda place: cells[place].swing.value)
    never = [place for place, one in cells.items() if any(map(math.isinf, one.settled))]
    swing = cells[most].swing
    said = (
        f"Nowhere in the map does the loaded server's ratio oscillate once it has settled: its swing is "
        f"{swing.value:.3f} at most"
        if swing.value < STILL
        else f"The loaded server's ratio swings most, by {swing.text(3)}, with Delta = {most[0]:g} and a window of "
        f"{most[1]:g} s"
    )
    settles = f"it does not settle in every run of {len(never)} cells" if never else "it settles in every run"
    return f"{said}; {settles}."


def report(records: Sequence[Record]) -> Report:
    """Lab beside simulation, and the map."""
    sides = {"lab": _of(records, "lab"), "simulated": _of(records, "sim")}
    rows = [
        [f"{name}, {len(runs)} {'run' if len(runs) == 1 else 'runs'}", *seen(runs).cells]
        for name, runs in sides.items()
        if runs
    ]
    cells = cells_of_map(records)
    heading = ["settled (s)", "loaded server's ratio then", "its swing", "connect, mean (ms)"]
    return Report(
        tables=[
            Table(["run", *heading], rows),
            Table(
                ["Delta", "window (s)", *heading],
                [[f"{delta:g}", f"{window:g}", *one.cells] for (delta, window), one in cells.items()],
            ),
        ],
        goals=[_agreement(records)],
        text=[
            f"Lab and simulation side by side have T = {PERIOD_S:g} s and a window of {WINDOW_S:g} s; the map has the "
            f"paper's T = {MAP_PERIOD_S:g} s. Means with 95 % intervals where there are several runs. Settled: from "
            "when on the loaded server's ratio stays within 0.05 of its mean over the last third; swing: its standard "
            "deviation there. Connect times: what was given up after 5 s counts as that. Nothing of the simulation is "
            "fitted to the lab: the CPU limit comes in slices and turns, a page costs what it costs without load.",
            _falls(sides["lab"]),
            _best(cells),
            _oscillation(cells),
            _connect_times(sides["lab"], sides["simulated"]),
            f"{switch_sentence(sides['lab'])} {load_sentence(sides['lab'])}".strip(),
        ],
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Ratios against time, lab and simulation; the map of connect times."""
    left, right = figure.subplots(1, 2)
    for where, style in (("lab", "-"), ("sim", ":")):
        for one in _of(records, where)[:1]:
            for number, name in enumerate(SERVER_NAMES, 1):
                rows = one.result["ratios"]
                label = f"{name}{' (loaded)' if name == LOADED else ''}, {where}"
                left.plot(
                    [row[0] for row in rows], [row[number] for row in rows], style, color=f"C{number}", label=label
                )
    left.set_xlabel("time (s)")
    left.set_ylabel("ratio")
    left.set_ylim(0, None)
    left.legend(fontsize="x-small")
    left.grid(alpha=0.3)
    cells = cells_of_map(records)
    for window in sorted({place[1] for place in cells}):
        means = {delta: one.connect for (delta, other), one in cells.items() if other == window}
        bars = [0.0 if math.isnan(one.half) else min(one.half, 0.9 * one.value) for one in means.values()]
        values = [one.value for one in means.values()]
        right.errorbar(list(means), values, yerr=bars, fmt="o-", ms=3, label=f"window {window:g} s")
    right.set_xlabel("Delta")
    right.set_ylabel("connect time, mean (ms), simulated")
    right.set_yscale("log")
    if cells:
        right.legend(fontsize="x-small")
    right.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="r-fig6",
    title="The ratios against time; Delta and the window",
    source="Paper 000, Fig. 6",
    about=f"Three servers, one loaded, {RATE_PER_S:g} requests/s, R in paper mode from equal ratios: in the lab, the "
    "same by simulation (`sim/`, with the controller's own algorithms), and by simulation for Delta from 0.02 to 0.9 "
    "and windows from 20 to 400 s.",
    points=points,
    place=place,
    compute=compute,
    report=report,
    draw=draw,
    needs_root=True,
)
