"""Time and CPU cost of a round of the controller with the embedded switch, by number of servers and measured flows."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from sluice.balance.slowness import READINGS
from sluice.config.load import parse
from sluice.features import Balance, CrowdControl, world_of
from sluice.features.balance.decisions import touched
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import TICK_BASE, Register
from sluice.names import Meter as MeterName
from sluice.names import Table as TableName
from sluice.switch.ledger import read_ledger
from sluice.switch.pipeline import CODE, INFO, Pipeline, artefacts
from sluice.switch.reconcile import read_back
from sluice.switch.registers import Registers, open_registers
from sluice.switch.secondlook import read_loads
from sluice.switch.session import Session

from experiments.controllerplace import Cost, configuration, serving
from experiments.experiment import Axes, Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, mean_of
from experiments.records import grouped

FLOWS = (1024, 4096, 16_384, 65_536)
CASES = (*((10, flows) for flows in FLOWS), (100, 4096), *((1000, flows) for flows in FLOWS))
"""The measured pairs of a number of servers and a number of flows."""
QUICK_CASES = ((10, 1024), (10, 4096), (100, 4096), (1000, 4096), (1000, 65_536))
ROUNDS, QUICK_ROUNDS = 15, 5
REPETITIONS = 3
R_PERIOD_S, NEWS_PERIOD_S, POLL_S = 10.0, 64.0, 1.0
"""The published periods of R and NEWS, and the default interval between two readings of the flows, in seconds."""
LATENCY_S = 0.1
SHARE = 0.02


def points(quick: bool) -> Sequence[Point]:
    """Return a point to measure for every pair of numbers of servers and flows, and every repetition; the quick form
    has fewer pairs and no repetitions."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return [
        Point(
            f"{servers} servers, {flows} flows, {rounds} rounds with loads #{number}",
            {"servers": servers, "flows": flows, "rounds": rounds},
            8 + rounds * (0.5 + flows / 16_384),
            group="switch",
        )
        for number in range(1 if quick else REPETITIONS)
        for servers, flows in (QUICK_CASES if quick else CASES)
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Yield the measuring function, which starts a new switch for each point."""
    del group, say

    def measure(point: Point) -> Values:
        with TemporaryDirectory() as directory, serving(Path(directory)) as address:
            return asyncio.run(_measure(Path(directory), address, **point.parameters))

    yield measure


# -- the switch


def _resized(directory: Path, flows: int) -> Pipeline:
    """Return the P4 program with its rate registers resized to `flows` cells. Packets use at most 4,096 cells; the
    controller reads all."""
    code = json.loads((artefacts() / CODE).read_text())
    registers = [
        register for register in code["register_arrays"] if register["name"].startswith("SluiceIngress.rates.")
    ]
    for register in registers:
        register["size"] = flows
    info, count = re.subn(
        r'(name: "SluiceIngress\.rates\.(?:flow\.rate_flow|bytes\.rate_bytes)".*?\n  size: )\d+',
        rf"\g<1>{flows}",
        (artefacts() / INFO).read_text(),
        flags=re.DOTALL,
    )
    assert (len(registers), count) == (2, 2), "the program's registers of rates are not where they were"
    (directory / CODE).write_text(json.dumps(code))
    (directory / INFO).write_text(info)
    return Pipeline(directory)


# -- what is measured


async def _measure(directory: Path, address: str, servers: int, flows: int, rounds: int) -> Values:
    pipeline = _resized(directory, flows)
    # Both control loops (R and NEWS) are in paper mode, so that every decision is followed by a write to the switch.
    both = configuration(servers, balance={"mode": "paper"}) | {"news": {"mode": "paper", "identify": False}}
    world = world_of(parse(yaml.safe_dump(both)))
    async with Session(address, 1, pipeline) as session:
        await session.push_pipeline()
        link = Link(session, registers := await open_registers(session, None), await read_back(session))
        await link.apply(world.state())
        try:
            return await _rounds(world, link, registers, flows, rounds)
        finally:
            await registers.close()


async def _rounds(world: World, link: Link, registers: Registers, flows: int, rounds: int) -> Values:
    view, service = world[CrowdControl].view, world.plan.services[0]
    assert view is not None
    balancer, servers = world[Balance].views[service.id].balancer, [server.id for server in service.servers]
    r, met, polled, decided, written = Cost.none(), Cost.none(), Cost.none(), Cost.none(), 0
    number = view.wanted().numbers[service.config.address] if view else 0
    for turn in range(rounds + 3):
        now = 100.0 * turn
        crowd = turn >= 2  # two quiet intervals, then a lasting alarm, so that every decision changes the limit
        for register, cells in _cells(turn, flows, servers, number, crowd=crowd).items():
            await registers.write_cells(register, cells)
        warm = turn >= 3
        poll, decide, meet, balance = (polled, decided, met, r) if warm else [Cost.none() for _ in range(4)]
        with poll.measured():
            samples = await view.poll(registers)
        with decide.measured():
            await view.count(registers)
            view.observe(now, await read_ledger(registers, servers), samples, balancer.ejected, world[Balance].ratios)
            tables = frozenset({TableName.DESTINATIONS, TableName.SAMPLING})
            meters = frozenset({MeterName.DESTINATION_LIMIT, MeterName.RETURNING_LIMIT})
            written += warm and await link.apply(world.state(), tables, meters) > 0
        ejected = balancer.ejected
        with meet.measured():
            balancer.sample_open(await read_loads(registers, servers))
        with balance.measured():
            balancer.observe(now, await read_ledger(registers, servers))
            written += warm and await link.apply(world.state(service), touched(ejected, balancer.ejected)) > 0
    whole = [sum(parts) for parts in zip(polled.wall, decided.wall, met.wall, r.wall, strict=True)]
    return {
        "r": r.values(),
        "poll": polled.values(),
        "news": decided.values(),
        "loads": met.values(),
        "whole_ms": 1000 * statistics.median(whole),
        "whole_worst_ms": 1000 * max(whole),
        "written_share": written / (2 * rounds),
        "alarm": view.decision is not None and view.decision.detection.alarm,
        "flows": 0 if view.decision is None else view.decision.measurement.flows,
    }


def _cells(
    turn: int, flows: int, servers: Sequence[int], destination: int, *, crowd: bool
) -> dict[Register, dict[int, int]]:
    """Return the cells that a round's packets would have written to the switch's registers: every flow had packets, and
    only the first server lost SYNs."""
    stamp = TICK_BASE + (turn + 1) * 100_000
    octets = 2_000 if crowd else 20_000
    asked = 3_000 * turn + (20_000 * (turn - 1) if crowd else 0)
    return {
        Register.RATE_FLOW: {slot: (slot % 1000 + 1) << 32 | stamp for slot in range(flows)},
        Register.RATE_BYTES: dict.fromkeys(range(flows), octets + turn),
        Register.REQUESTS_OFFERED: {destination: asked},
        Register.REQUESTS_ADMITTED: {destination: asked},
        Register.LEDGER_SYN: {server: 100 * turn + (50 * turn if server == servers[0] else 0) for server in servers},
        Register.LEDGER_SYNACK: dict.fromkeys(servers, 100 * turn),
        Register.LEDGER_COMPLETED: dict.fromkeys(servers, 100 * turn),
        Register.LOAD_FIRST: dict.fromkeys(servers, turn),
    }


# -- the report


PARTS = {
    "poll": "read the flows",
    "news": "NEWS: read, decide, write",
    "loads": "read the open connections",
    "r": "R: read, decide, write",
}


@dataclass(frozen=True, slots=True)
class Size:
    """The runs with one number of servers and one number of flows."""

    servers: int
    flows: int
    runs: Sequence[Record]

    def ms(self, phase: str, figure: str = "ms") -> Mean:
        """Return the mean over runs of a phase's median time in ms: wall-clock time (`ms`) or CPU time (`cpu_ms`)."""
        return mean_of([record.result[phase][figure] for record in self.runs])

    @property
    def whole_ms(self) -> Mean:
        """Return the mean over runs of a whole round's median time in ms."""
        return mean_of([record.result["whole_ms"] for record in self.runs])

    @property
    def worst_ms(self) -> float:
        """Return the time in ms of the longest round of all runs."""
        return max(record.result["whole_worst_ms"] for record in self.runs)

    @property
    def percent(self) -> Mean:
        """Return the controller's CPU use at the published periods, in percent of a core."""
        return mean_of([100 * _share(record) for record in self.runs])

    @property
    def latency(self) -> str:
        """Return the mean and the largest time of a whole round as text."""
        return f"{self.whole_ms.text(0)} ms ({self.worst_ms:.0f} in the worst round)"

    def row(self) -> list[str]:
        """Return the table row of this number of servers and flows."""
        parts = [f"{self.ms(phase).text()} ({self.ms(phase, 'cpu_ms').text()})" for phase in PARTS]
        whole = [self.whole_ms.text(), f"{self.worst_ms:.1f}", f"{self.percent.text(2)} %"]
        return [f"{self.servers:,}", f"{self.flows:,}", *parts, *whole]


def _share(record: Record) -> float:
    """Return the controller's CPU use at the published periods, as a share of one core."""
    result = record.result
    balancing_ms = (result["r"]["cpu_ms"] + READINGS * result["loads"]["cpu_ms"]) / R_PERIOD_S
    return (balancing_ms + result["poll"]["cpu_ms"] / POLL_S + result["news"]["cpu_ms"] / NEWS_PERIOD_S) / 1000


def _sizes(records: Sequence[Record]) -> list[Size]:
    by_size = grouped(records, lambda record: (record.parameters["servers"], record.parameters["flows"]))
    return [Size(servers, flows, runs) for (servers, flows), runs in by_size.items()]


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each number of servers and flows."""
    sizes = _sizes(records)
    known = {(size.servers, size.flows): size for size in sizes}
    usual = known.get((1000, 4096))
    seen = "not measured"
    goals = [
        Goal(
            "observe, decide, write at 1,000 servers and 4,096 flows in less than 100 ms",
            None if usual is None else usual.whole_ms.value < 1000 * LATENCY_S,
            seen if usual is None else usual.latency,
        ),
        Goal(
            "less than 2 % of one core at the papers' periods (1,000 servers, 4,096 flows)",
            None if usual is None else usual.percent.value < 100 * SHARE,
            seen if usual is None else f"{usual.percent.text(2)} %",
        ),
    ]
    heading = ["servers", "flows", *(f"{title}, ms (CPU)" for title in PARTS.values())]
    return Report(
        tables=[Table([*heading, "all of it, ms", "its worst round, ms", "of a core"], [size.row() for size in sizes])],
        goals=goals,
        summary={record.key: record.result for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the time of each phase by number of flows (solid: few servers, dashed: many) and by number of servers."""
    left, right = figure.subplots(1, 2, sharey=True)
    sizes = _sizes(records)
    for number, (phase, title) in enumerate(PARTS.items()):
        for style, servers in (("o-", 10), ("o--", 1000)):
            row = sorted((size for size in sizes if size.servers == servers), key=lambda size: size.flows)
            label = f"{title.partition(':')[0]}, {servers:,} servers"
            _curve(left, [(size.flows, size.ms(phase)) for size in row], f"C{number}{style}", label)
        row = sorted((size for size in sizes if size.flows == 4096), key=lambda size: size.servers)
        _curve(right, [(size.servers, size.ms(phase)) for size in row], f"C{number}o-", "")
    left.set_xlabel("flows")
    right.set_xlabel("servers (4,096 flows)")
    left.set_ylabel("ms")
    left.legend(fontsize="x-small")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(alpha=0.3, which="both")


def _curve(axes: Axes, points: Sequence[tuple[int, Mean]], style: str, label: str) -> None:
    if not points:
        return
    bars = [mean.bar for _, mean in points]
    axes.errorbar([x for x, _ in points], [mean.value for _, mean in points], yerr=bars, fmt=style, label=label, ms=3)


EXPERIMENT = Experiment(
    name="controller-cost",
    title="What the controller costs",
    source="Control run",
    about="The controller against the embedded switch over P4Runtime, without packets; CPU time in brackets. "
    "*Of a core*: R every 10 s, NEWS every 64 s, flows read each second.",
    points=points,
    place=place,
    report=report,
    draw=draw,
)
