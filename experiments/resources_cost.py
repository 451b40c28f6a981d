"""Time and CPU cost of the controller when it shares out the servers' send buffers: of the decision alone, and of the
whole loop with the embedded switch."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import yaml
from numpy.typing import NDArray
from sluice.config.load import parse
from sluice.dataplane.connection import FINGERPRINT_BITS
from sluice.dataplane.transfers import (
    EDGE_BITS,
    FLIGHT_BITS,
    FLIGHT_UNIT,
    INTERVAL_BITS,
    SAMPLES_BITS,
    SEGMENTS_BITS,
    SERVER_BITS,
    STAMP_BITS,
)
from sluice.features import Resources, world_of
from sluice.features.resources.stages import SwitchStages
from sluice.features.resources.tasks import SHARE_S, share_once
from sluice.features.resources.view import ResourcesView
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import TRANSFERS, Register
from sluice.resources.columns import Columns
from sluice.resources.sharer import Caps
from sluice.switch import transfers
from sluice.switch.pipeline import load
from sluice.switch.reconcile import read_back
from sluice.switch.registers import open_registers
from sluice.switch.session import Session

from experiments.controllerplace import Cost, configuration, serving
from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, mean_of
from experiments.records import grouped

SERVERS, QUICK_SERVERS = (1, 10, 100, 1000), (1, 1000)
MANY = 65_536
WHOLE, DECIDE = "whole loop", "deciding"
EVERY, FEW = "every cap changes", "few caps change"
ROUNDS, QUICK_ROUNDS, WARM = 20, 8, 3
REPETITIONS = 3
LATENCY_S, SHARE = 0.1, 0.1
MSS, RTT_S = 1448, 0.02
BUDGET = 300_000
"""A server's budget is this many bytes for each of its transfers. The transfers of most servers together have more
bytes in flight, so that caps are needed."""
MOST = 1 << 30
"""The largest budget of a server, in bytes."""

Cells = Mapping[Register, NDArray[np.uint64]]


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure for every number of servers: the decision alone while every cap changes, and the
    whole loop while every cap or few caps change."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return [
        Point(
            f"{what}, {servers} servers, {slots} slots, {change}, {rounds} rounds #{number}",
            {"what": what, "servers": servers, "slots": slots, "change": change, "rounds": rounds},
            3 + rounds * (1.0 if what == WHOLE else 0.3),
            group="switch",
        )
        for number in range(1 if quick else REPETITIONS)
        for what, slots, changes in ((DECIDE, MANY, (EVERY,)), (WHOLE, TRANSFERS, (EVERY, FEW)))
        for servers in (QUICK_SERVERS if quick else SERVERS)
        for change in changes
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Yield the measuring function, which starts a switch for each point that measures the whole loop."""
    del group, say

    def measure(point: Point) -> Values:
        load_of = Load(**{name: point.parameters[name] for name in ("servers", "slots", "change")})
        if point.parameters["what"] == DECIDE:
            return _decide(load_of, point.parameters["rounds"])
        with TemporaryDirectory() as directory, serving(Path(directory)) as address:
            return asyncio.run(_loop(load_of, address, point.parameters["rounds"]))

    yield measure


# -- the switch's registers


@dataclass(frozen=True, slots=True)
class Load:
    """A load with a transfer in every slot, equally many for each server, with 10 KB to 1 MB in flight."""

    servers: int
    slots: int
    change: str

    def world(self) -> World:
        """Return the state of the controller's features for the servers of this load."""
        budget = min(MOST, BUDGET * self.slots // self.servers)
        resources = {"send": {"budget": budget}, "receive": {"budget": budget}}
        return world_of(parse(yaml.safe_dump(configuration(self.servers, resources=resources))))

    def cells(self, turn: int, servers: Sequence[int]) -> Cells:
        """Return the switch's register cells at the end of a round.

        With EVERY, the bytes in flight of every transfer change in each round, and are 0 for an eighth of the
        transfers, which is another eighth in each round. With FEW, every transfer has a constant number of bytes in
        flight, except one transfer in a hundred (another hundredth in each round), which has a random number.
        """
        slot = np.arange(self.slots, dtype=np.uint64)
        owner = np.array(servers, np.uint64)[(slot % np.uint64(self.servers)).astype(np.int64)]
        draws = slot if self.change == EVERY else slot[slot % np.uint64(100) == turn % 100]
        flight = np.random.default_rng(0).uniform(1e4, 1e6, self.slots)
        flight[draws.astype(np.int64)] = np.random.default_rng(1 + turn).uniform(1e4, 1e6, len(draws))
        rests = (slot + np.uint64(turn)) % np.uint64(8) == 0
        if self.change == EVERY:
            flight[rests] = 0
        now_us = (turn + 10) << INTERVAL_BITS
        units = (flight / FLIGHT_UNIT).astype(np.uint64)
        segments = np.uint64(1000 * (turn + 1))
        server, stamp, counted = (np.uint64(bits) for bits in (SERVER_BITS, STAMP_BITS, SEGMENTS_BITS))
        key = slot % np.uint64(1 << FINGERPRINT_BITS)
        return {
            Register.TRANSFER_OWNER: (key << server | owner) << stamp,
            Register.TRANSFER_EDGE: np.full(self.slots, MSS << EDGE_BITS, np.uint64),
            Register.TRANSFER_ACKED: np.zeros(self.slots, np.uint64),
            Register.TRANSFER_ACTIVITY: np.full(self.slots, now_us, np.uint64),
            Register.TRANSFER_LEAST: np.full(self.slots, int(RTT_S * 1e6), np.uint64),
            Register.TRANSFER_RTT: np.full(
                self.slots, (int(RTT_S * 1e6) * 10 * (turn + 1)) << SAMPLES_BITS | 10 * (turn + 1), np.uint64
            ),
            Register.TRANSFER_LOSSES: np.full(self.slots, (turn + 1) << 31 | (turn + 1) << 47, np.uint64),
            Register.TRANSFER_SENT: np.full(self.slots, segments * np.uint64(MSS) << counted | segments, np.uint64),
            Register.TRANSFER_FLIGHT: np.uint64((turn + 10) << 2 * FLIGHT_BITS) | units,
        }


# -- what is measured


def _decide(load_of: Load, rounds: int) -> Values:
    """Measure the decision alone: decode register cells from memory, and compute the caps of the transfers."""
    world = load_of.world()
    view, servers = _parts(world)
    decided, written = Cost.none(), 0
    for turn in range(WARM + rounds):
        cells = load_of.cells(turn, servers)
        loads = dict.fromkeys(servers, load_of.slots // load_of.servers)
        with (decided if turn >= WARM else Cost.none()).measured():
            decision = view.observe(transfers.decode(cells), loads)
        view.wrote(decision)
        written += len(decision.caps.flow) if turn >= WARM else 0
    return {"decide": decided.values(), "written": written / rounds}


class _Timed(SwitchStages):
    """Stages of the controller's loop (reading and writing the switch) that record how long they take."""

    def __init__(self, world: World, link: Link) -> None:
        super().__init__(world, link)
        self.begin()

    def begin(self) -> None:
        """Reset the recorded times."""
        self.read, self.wrote, self.written = Cost.none(), Cost.none(), 0

    async def transfers(self) -> Columns:
        """Read the transfers' columns from the switch, and record the time."""
        with self.read.measured():
            return await super().transfers()

    async def cap(self, own: Caps) -> None:
        """Write caps to the switch, and record the time."""
        self.written += len(own.flow)
        with self.wrote.measured():
            await super().cap(own)


async def _loop(load_of: Load, address: str, rounds: int) -> Values:
    """Measure the whole loop: repeat its step against a switch whose registers contain the load."""
    world = load_of.world()
    view, servers = _parts(world)
    async with Session(address, 1, load()) as session:
        await session.push_pipeline()
        link = Link(session, registers := await open_registers(session, None), await read_back(session))
        await link.apply(world.state())
        await registers.write_cells(Register.LOAD_FIRST, dict.fromkeys(servers, load_of.slots // load_of.servers))
        stages, whole = _Timed(world, link), Cost.none()
        before: Cells = {}
        for turn in range(WARM + rounds):
            if turn == WARM:
                stages.begin()
            now = load_of.cells(turn, servers)
            for register, cells in now.items():
                old = before.get(register)
                changed = np.arange(cells.size) if old is None else np.flatnonzero(cells != old)
                await registers.write_cells(register, dict(zip(changed.tolist(), cells[changed].tolist(), strict=True)))
            before = now
            with (whole if turn >= WARM else Cost.none()).measured():
                await share_once(world, link, view, stages)
        await registers.close()
    return {
        "whole": whole.values(),
        "read": stages.read.values(),
        "write": stages.wrote.values(),
        "written": stages.written / rounds,
    }


def _parts(world: World) -> tuple[ResourcesView, list[int]]:
    view = world[Resources].view
    assert view is not None
    return view, [server.id for server in world.plan.services[0].servers]


# -- the report


@dataclass(frozen=True, slots=True)
class Case:
    """The repeated runs of one load: what is measured (DECIDE or WHOLE), the numbers of servers and slots, and whether
    every cap or few caps change (EVERY or FEW)."""

    what: str
    servers: int
    slots: int
    change: str
    runs: Sequence[Record]

    @property
    def main(self) -> str:
        """Name of the measured phase that covers all other phases of the case."""
        return "whole" if self.what == WHOLE else "decide"

    def ms(self, phase: str, figure: str = "ms") -> Mean:
        """Return the mean over runs of a phase's median time in ms: wall-clock time (`ms`) or CPU time (`cpu_ms`)."""
        return mean_of([record.result[phase][figure] for record in self.runs])

    @property
    def worst_ms(self) -> float:
        """Return the time in ms of the longest round of all runs."""
        return max(record.result[self.main]["worst_ms"] for record in self.runs)

    @property
    def percent(self) -> Mean:
        """Return the CPU use at one decision every SHARE_S seconds, in percent of a core."""
        return mean_of([record.result[self.main]["cpu_ms"] / 10 / SHARE_S for record in self.runs])

    def row(self) -> list[str]:
        """Return the table row of the case."""

        def both(phase: str) -> str:
            return f"{self.ms(phase).text()} ({self.ms(phase, 'cpu_ms').text()})"

        parts = [both("read"), both("write")] if self.what == WHOLE else ["-", "-"]
        many = mean_of([record.result["written"] for record in self.runs]).text(0)
        size = [self.what, f"{self.servers:,}", f"{self.slots:,}", self.change, many]
        return [*size, *parts, both(self.main), f"{self.worst_ms:.0f}", f"{self.percent.text()} %"]


def _cases(records: Sequence[Record]) -> list[Case]:
    names = ("what", "servers", "slots", "change")
    sizes = grouped(records, lambda record: tuple(record.parameters[name] for name in names))
    return [Case(**dict(zip(names, size, strict=True)), runs=runs) for size, runs in sizes.items()]


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each size; the goals are about the slowest size."""
    cases = _cases(records)
    deciding = [case for case in cases if case.what == DECIDE]
    loops = [case for case in cases if case.what == WHOLE]

    def slowest(text: str, candidates: Sequence[Case], most: float, figure: str) -> Goal:
        if not candidates:
            return Goal(text, None, "not measured")
        worst = max(candidates, key=lambda case: case.ms(case.main, figure).value)
        value = worst.ms(worst.main, figure)
        seen = f"{value.text()} ms, {worst.servers:,} server{'s' if worst.servers > 1 else ''}, {worst.change}"
        return Goal(text, value.value < 1000 * most, seen)

    goals = [
        slowest(f"deciding for {MANY:,} transfers in less than 100 ms (CPU time)", deciding, LATENCY_S, "cpu_ms"),
        slowest(f"the whole loop at {TRANSFERS:,} slots in less than 100 ms", loops, LATENCY_S, "ms"),
        slowest("and less than 10 % of a core at 1 s (CPU time)", loops, SHARE * SHARE_S, "cpu_ms"),
    ]
    heading = ("", "servers", "slots", "", "caps written", "read, ms (CPU)", "write caps, ms (CPU)", "all, ms (CPU)")
    rows = [case.row() for case in cases]
    return Report(
        [Table([*heading, "worst, ms", "of a core"], rows)], goals, {record.key: record.result for record in records}
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw wall-clock and CPU time against the number of servers."""
    axes = figure.subplots()
    for number, (what, change) in enumerate(((DECIDE, EVERY), (WHOLE, EVERY), (WHOLE, FEW))):
        chosen = [case for case in _cases(records) if (case.what, case.change) == (what, change)]
        chosen.sort(key=lambda case: case.servers)
        for figure_of, style in (("ms", "o-"), ("cpu_ms", "o--")):
            label = f"{what}, {change}, {'wall' if figure_of == 'ms' else 'CPU'}"
            values = [case.ms(case.main, figure_of).value for case in chosen]
            axes.plot([case.servers for case in chosen], values, f"C{number}{style}", label=label, ms=3)
    axes.axhline(1000 * LATENCY_S, color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="servers", ylabel="ms")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize="x-small")


EXPERIMENT = Experiment(
    name="resources-cost",
    title="What sharing servers' buffers costs",
    source="Control run",
    about="The controller's loop of buffers against the embedded switch over P4Runtime, without packets: read all "
    f"slots, decide, write changed caps. Deciding alone for {MANY:,} transfers in memory.",
    points=points,
    place=place,
    report=report,
    draw=draw,
)
