"""What the controller costs against the embedded switch, by servers and by measured flows."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml
from finsy.proto import p4d, p4r
from sluice.configload import parse
from sluice.loops.balancing import touched
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import TICK_BASE, Register
from sluice.names import Meter as MeterName
from sluice.names import Table as TableName
from sluice.switch.ledger import read_ledger
from sluice.switch.pipeline import CODE, INFO, Pipeline, artefacts
from sluice.switch.reconcile import read_back
from sluice.switch.registers import Registers, open_registers
from sluice.switch.session import Session

from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from topo.switches import REPOSITORY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINARY = REPOSITORY / "switch/target/release/sluice-switch"
CASES = ((10, 1024), (10, 4096), (10, 16_384), (10, 65_536), (100, 4096), (1000, 4096), (1000, 65_536))
"""Servers and flows."""
QUICK_CASES = tuple(one for one in CASES if one not in ((10, 16_384), (10, 65_536)))
ROUNDS, QUICK_ROUNDS = 15, 5
R_PERIOD_S, NEWS_PERIOD_S, POLL_S = 10.0, 64.0, 1.0
"""The papers' periods, and the default between two readings of the flows."""
LATENCY_S = 0.1
SHARE = 0.02
BATCH = 4096


def points(quick: bool) -> Sequence[Point]:
    """Every size; in the quick form not all numbers of flows with few servers."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    return [
        Point(
            f"{servers} servers, {flows} flows, {rounds} rounds",
            {"servers": servers, "flows": flows, "rounds": rounds},
            8 + rounds * (0.5 + flows / 16_384),
            group="switch",
        )
        for servers, flows in (QUICK_CASES if quick else CASES)
    ]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Every point starts a switch of its own."""
    del group, say

    def measure(point: Point) -> Values:
        with TemporaryDirectory() as directory:
            return asyncio.run(_measure(Path(directory), **point.parameters))

    yield measure


# -- the switch


def _resized(directory: Path, flows: int) -> Pipeline:
    """The program with so many cells of rates. Packets use 4,096 of them at most; the controller reads them all."""
    code = json.loads((artefacts() / CODE).read_text())
    registers = [one for one in code["register_arrays"] if one["name"].startswith("SluiceIngress.rates.")]
    for one in registers:
        one["size"] = flows
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


@asynccontextmanager
async def _switch() -> AsyncGenerator[str]:
    process = await asyncio.create_subprocess_exec(
        BINARY,
        *("--no-p4", "--device-id", "1", "--", "--grpc-server-addr", "127.0.0.1:0", "--cpu-port", "510"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 20)).decode()
        yield line.split("serving P4Runtime on ")[1].split(",")[0]
    finally:
        process.terminate()
        await process.wait()


def _configuration(servers: int) -> dict[str, Any]:
    """A service with so many servers; both loops in paper mode, so that every decision is followed by a write."""
    return {
        "interfaces": [
            {"port": 1, "mac": "02:00:00:00:00:01", "address": "10.1.0.1/16"},
            {"port": 2, "mac": "02:00:00:00:00:02", "address": "10.2.0.1/16"},
        ],
        "services": [
            {
                "name": "web",
                "address": "10.0.0.100",
                "port": 80,
                "balance": {"mode": "paper"},
                "servers": [
                    {"name": f"s{n}", "address": f"10.2.{(n + 9) // 250}.{(n + 9) % 250 + 2}", "port": 80}
                    for n in range(servers)
                ],
            }
        ],
        "news": {"mode": "paper", "identify": False},
    }


async def _put(session: Session, cells: dict[Register, dict[int, int]]) -> None:
    """Set cells, as packets would."""
    numbers = session.pipeline.schema.registers
    updates = [
        p4r.Update(
            type=p4r.Update.MODIFY,
            entity=p4r.Entity(
                register_entry=p4r.RegisterEntry(
                    register_id=numbers[register].id,
                    index=p4r.Index(index=index),
                    data=p4d.P4Data(bitstring=value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")),
                )
            ),
        )
        for register, column in cells.items()
        for index, value in column.items()
    ]
    for start in range(0, len(updates), BATCH):
        await session.write(updates[start : start + BATCH])


# -- what is measured


@dataclass(slots=True)
class Cost:
    """Seconds on the wall, and of this process's CPU time, of each round."""

    wall: list[float]
    cpu: list[float]

    @classmethod
    def none(cls) -> Cost:
        """Before the first round."""
        return cls([], [])

    @contextmanager
    def measured(self) -> Generator[None]:
        """One round."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)

    def values(self) -> dict[str, float]:
        """Medians, and the worst, in ms."""
        return {
            "ms": 1000 * statistics.median(self.wall),
            "worst_ms": 1000 * max(self.wall),
            "cpu_ms": 1000 * statistics.median(self.cpu),
        }


async def _measure(directory: Path, servers: int, flows: int, rounds: int) -> Values:
    pipeline = _resized(directory, flows)
    world = World.of(parse(yaml.safe_dump(_configuration(servers))))
    async with _switch() as address, Session(address, 1, pipeline) as session:
        await session.push_pipeline()
        link = Link(session, registers := await open_registers(session, None), await read_back(session))
        await link.apply(world.state())
        try:
            return await _rounds(world, link, registers, flows, rounds)
        finally:
            await registers.close()


async def _rounds(world: World, link: Link, registers: Registers, flows: int, rounds: int) -> Values:
    view, service = world.news, world.plan.services[0]
    assert view is not None
    balancer, servers = world.views[service.id].balancer, [server.id for server in service.servers]
    r, polled, decided, written = Cost.none(), Cost.none(), Cost.none(), 0
    number = world.news.wanted().numbers[service.config.address] if world.news else 0
    for turn in range(rounds + 3):
        now = 100.0 * turn
        crowd = turn >= 2  # two quiet intervals, then an alarm that stays: every decision moves the limit
        await _put(link.session, _cells(turn, flows, servers, number, crowd=crowd))
        warm = turn >= 3
        poll, decide, balance = (polled, decided, r) if warm else (Cost.none(), Cost.none(), Cost.none())
        with poll.measured():
            samples = await view.poll(registers)
        with decide.measured():
            await view.count(registers)
            view.observe(now, await read_ledger(registers, servers), samples)
            tables = frozenset({TableName.DESTINATIONS, TableName.SAMPLING})
            meters = frozenset({MeterName.DESTINATION_LIMIT, MeterName.RETURNING_LIMIT})
            written += warm and await link.apply(world.state(), tables, meters) > 0
        ejected = balancer.ejected
        with balance.measured():
            balancer.observe(now, await read_ledger(registers, servers))
            written += warm and await link.apply(world.state(), touched(ejected, balancer.ejected)) > 0
    whole = [sum(parts) for parts in zip(polled.wall, decided.wall, r.wall, strict=True)]
    return {
        "r": r.values(),
        "poll": polled.values(),
        "news": decided.values(),
        "whole_ms": 1000 * statistics.median(whole),
        "whole_worst_ms": 1000 * max(whole),
        "written_share": written / (2 * rounds),
        "alarm": view.decision is not None and view.decision.detection.alarm,
        "flows": 0 if view.decision is None else view.decision.measurement.flows,
    }


def _cells(
    turn: int, flows: int, servers: Sequence[int], destination: int, *, crowd: bool
) -> dict[Register, dict[int, int]]:
    """What the switch has counted by a turn: every flow had packets, another server is the worst each time."""
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
    }


# -- the report


def _share(record: Record) -> float:
    """CPU at the papers' periods, in parts of one core."""
    one = record.result
    cpu_ms = one["r"]["cpu_ms"] / R_PERIOD_S + one["poll"]["cpu_ms"] / POLL_S + one["news"]["cpu_ms"] / NEWS_PERIOD_S
    return cpu_ms / 1000


def _latency(record: Record) -> str:
    return f"{record.result['whole_ms']:.0f} ms ({record.result['whole_worst_ms']:.0f} in the worst round)"


def _most(record: Record) -> str:
    """Say which part of a round takes longest."""
    parts = {"reading the flows": "poll", "NEWS": "news", "R": "r"}
    longest = max(parts, key=lambda name: record.result[parts[name]]["ms"])
    servers, flows = (record.parameters[name] for name in ("servers", "flows"))
    return f"With {servers:,} servers and {flows:,} flows the longest part of a round is {longest}."


def report(records: Sequence[Record]) -> Report:
    """A row a size."""
    rows = [
        [
            f"{one.parameters['servers']:,}",
            f"{one.parameters['flows']:,}",
            *(f"{one.result[part]['ms']:.1f} ({one.result[part]['cpu_ms']:.1f})" for part in ("poll", "news", "r")),
            f"{one.result['whole_ms']:.1f}",
            f"{one.result['whole_worst_ms']:.1f}",
            f"{_share(one):.2%}",
        ]
        for one in records
    ]

    def of(servers: int, flows: int) -> Record | None:
        wanted = (servers, flows)
        return next((one for one in records if (one.parameters["servers"], one.parameters["flows"]) == wanted), None)

    usual, largest = of(1000, 4096), of(1000, 65_536)
    seen = "not measured"
    goals = [
        Goal(
            "observe, decide, write at 1,000 servers and 4,096 flows in less than 100 ms",
            None if usual is None else usual.result["whole_ms"] < 1000 * LATENCY_S,
            seen if usual is None else _latency(usual),
        ),
        Goal(
            "the same at 65,536 flows: stated",
            None if largest is None else True,
            seen if largest is None else _latency(largest),
        ),
        Goal(
            "less than 2 % of one core at the papers' periods (1,000 servers, 4,096 flows)",
            None if usual is None else _share(usual) < SHARE,
            seen if usual is None else f"{_share(usual):.2%}",
        ),
    ]
    rounds = records[0].parameters["rounds"]
    written = min(one.result["written_share"] for one in records)
    return Report(
        tables=[
            Table(
                [
                    "servers",
                    "flows",
                    "read the flows, ms (CPU)",
                    "NEWS: read, decide, write",
                    "R: read, decide, write",
                    "all of it, ms",
                    "its worst round",
                    "of a core",
                ],
                rows,
            )
        ],
        goals=goals,
        text=[
            f"Medians over {rounds} rounds of one run each; CPU is the controller's process (its gRPC threads "
            f"included). Every cell changes between two rounds, and at least {written:.0%} of the decisions were "
            "followed by a write: a limit for NEWS, the whole weight vector for R. `Of a core` is that CPU at T = 10 s "
            "for R, 64 s for NEWS, and one reading of the flows a second. More than 4,096 flows are registers made "
            "larger in the compiled program, for this measurement only. "
            + " ".join(_most(one) for one in (usual, largest) if one is not None),
        ],
        summary={one.key: one.result for one in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Latency by flows and by servers."""
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, fixed, varied, value in ((left, "servers", "flows", 10), (right, "flows", "servers", 4096)):
        runs = sorted(
            (one for one in records if one.parameters[fixed] == value), key=lambda one: one.parameters[varied]
        )
        for part, label in (("poll", "read the flows"), ("news", "NEWS"), ("r", "R")):
            axes.loglog(
                [one.parameters[varied] for one in runs], [one.result[part]["ms"] for one in runs], "o-", label=label
            )
        axes.set_xlabel(f"{varied} ({value:,} {fixed})")
        axes.grid(alpha=0.3, which="both")
    left.set_ylabel("ms")
    left.legend(fontsize="small")


EXPERIMENT = Experiment(
    name="controller-cost",
    title="What the controller costs",
    source="Asked for by this project: observe-decide-write against the embedded switch",
    about="The controller's own steps against the embedded switch over P4Runtime, without packets: what packets would "
    "have counted is written into the registers before each round, then flows are read, NEWS and R each read, decide "
    "and write.",
    points=points,
    place=place,
    report=report,
    draw=draw,
)
