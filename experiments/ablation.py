"""A simulated ablation of R's production mode: each mechanism is switched off in turn, in several cases (pools of
servers and causes of trouble)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sluice.balance import BalanceOptions, Mode, production
from sluice.balance.options import LARGEST
from sluice.balance.recovery import Ceilings
from sluice.balance.window import Window

from experiments import sim_unlike
from experiments.ablation_tables import WHOLE, Ablation, Measured
from experiments.experiment import Experiment, Figure, Point, Record, Report, Values
from experiments.records import matching
from experiments.substitutes import Part, substituted
from sim.balancing import Pin
from sim.pool import PoolPlan, PoolRun, ServerPlan, Simulation, simulate
from sim.secondlook import SecondLook
from topo.plan.load import HOGS

GIVEN_UP_S = 5.0
"""Seconds after which a client gives up (httperf's timeout); a connection given up counts with this time."""
PERIOD_S, WINDOW_S = 1.0, 10.0
BEGINS_S, ENDS_S, END_S = 60.0, 120.0, 180.0
"""Seconds at which the cause of a case (for example, a loaded server) begins and ends, and at which the run ends."""
POOL, LOADED = 10, 1
WORK_S, RATE_PER_SERVER = 7e-3, 5.6
"""CPU seconds of a request, and requests per second for each server. This load is two fifths of the capacity of a
server, which may use a tenth of a CPU."""
OVERLOAD = 6.0
"""Factor by which overload multiplies the usual request rate. The product is more than twice the capacity of all
servers, so that each server loses most SYNs."""
LOST_SHARE = 0.01
"""Share of the SYNs lost between switch and servers in the case of stray losses."""
FLOOD_PER_S = 500.0
"""SYNs per second of the flood, whose handshakes are never completed: nine for each SYN of the clients."""
SEEDS, QUICK_SEEDS = (1, 2, 3), (1,)
LEAST_MS = 1.0
"""A mechanism is useful in a case if its absence adds more than this time in ms to a request, and more than
ablation_tables.MARGIN of the mean time, both with 95 % confidence."""
CONNECTIONS_PER_S = 18_000.0
"""Approximate number of connections that are simulated per second of computing, to estimate the time left."""


class WithoutIdleQueue(SecondLook):
    """A second look (choice between drawn servers by load) that compares only the drawn servers, without the search for
    an idle server."""

    seeks_idle = False


class ForgetfulCeilings(Ceilings):
    """Ceilings of weights that do not remember the shares of traffic at which a server lost SYNs."""

    def lost(self, server: int, share: float, intervals: int) -> None:
        """Ignore the loss."""


class NeverClearedWindow(Window):
    """A window that is not cleared after a decision: losses that have already reduced a weight reduce it again as long
    as the window contains these losses."""

    def clear(self) -> None:
        """Keep the intervals."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Production mode without one of its mechanisms, or another mode."""

    mode: Mode = Mode.PRODUCTION
    options: Mapping[str, float] = field(default_factory=dict[str, float])
    """Production options that switch the mechanism off."""
    parts: Sequence[Part] = ()
    """Substitutes for mechanisms that no option switches off: module, name and substitute."""
    second_look: type[SecondLook] | None = SecondLook


def _first(find: Callable[..., dict[int, float]], *arguments: Any, **options: Any) -> dict[int, float]:
    """Return only the first of the servers that ``find`` returns."""
    return dict(list(find(*arguments, **options).items())[:1])


PAPER, FIXED = "paper mode", "fixed weights"
DELETED = Variant()
"""Placeholder for a mechanism that was deleted after this experiment: its rows report earlier runs. A new run with it
simulates the complete mode."""
MECHANISMS: Mapping[str, Variant] = {
    WHOLE: Variant(),
    "confidence": Variant(options={"confidence_z": 1e-6}),
    "step in proportion": DELETED,
    "several servers at once": Variant(
        parts=[(production, name, partial(_first, getattr(production, name))) for name in ("standing_out", "slow")]
    ),
    "losses acted on once": Variant(parts=[(production, "Window", NeverClearedWindow)]),
    "slowness": Variant(options={"slow_factor": 0.0}),
    "recovery": Variant(options={"recovery": 0.0}),
    "ceilings": Variant(parts=[(production, "Ceilings", ForgetfulCeilings)]),
    "slow start": Variant(options={"slow_start_s": 0.0}),
    "silence": Variant(options={"silent_connections": LARGEST}),
    "panic": DELETED,
    "freeze in floods": DELETED,
    PAPER: Variant(Mode.PAPER),
    FIXED: Variant(Mode.FIXED),
}
NO_IDLE_QUEUE = "idle queue"
LOOKS = {True: "with the second look", False: "without the second look"}


def _loads(simulation: Simulation, others: int) -> None:
    for server in simulation.servers[-LOADED:]:
        server.cpu.others = others


def _dies(simulation: Simulation, servers: int, *, alive: bool) -> None:
    for server in simulation.servers[-servers:]:
        server.alive = alive


def _refuses(simulation: Simulation, *, refuses: bool) -> None:
    simulation.servers[-1].refuses = refuses


def _overloads(simulation: Simulation, times: float) -> None:
    simulation.load(times * simulation.plan.rate_per_s)


def _floods(simulation: Simulation) -> None:
    """Send a SYN whose handshake is never completed, and schedule the next SYN of the flood until ENDS_S."""
    (switch,) = simulation.switches
    pin = Pin()
    server = switch.syn(pin)
    if simulation.servers[server].syn():
        switch.synack(server)
    switch.end(pin, seen=False)
    if simulation.clock.now < ENDS_S:
        simulation.clock.after(1 / FLOOD_PER_S, _floods, simulation)


STRAY = "1 % of SYNs lost"
Events = Mapping[float, Callable[[Simulation], None]]
CAUSES: Mapping[str, Events] = {
    "nothing": {},
    STRAY: {},
    "a server loaded for a while": {BEGINS_S: partial(_loads, others=HOGS), ENDS_S: partial(_loads, others=0)},
    "a server silent for a while": {
        BEGINS_S: partial(_dies, servers=1, alive=False),
        ENDS_S: partial(_dies, servers=1, alive=True),
    },
    "most servers silent": {
        BEGINS_S: partial(_dies, servers=6, alive=False),
        ENDS_S: partial(_dies, servers=6, alive=True),
    },
    "a server refuses": {BEGINS_S: partial(_refuses, refuses=True), ENDS_S: partial(_refuses, refuses=False)},
    "overload": {BEGINS_S: partial(_overloads, times=OVERLOAD), ENDS_S: partial(_overloads, times=1.0)},
    "a flood, a server silent in it": {
        BEGINS_S: _floods,
        BEGINS_S + 10: partial(_dies, servers=1, alive=False),
        ENDS_S: partial(_dies, servers=1, alive=True),
    },
}
LOADED_POOLS = {"1 of 3 servers loaded": 3, "3 of 30 servers loaded": 30}
CASES = (*LOADED_POOLS, *CAUSES, *sim_unlike.CPUS)
QUICK_CASES = ("1 of 3 servers loaded", "a server silent for a while")

WITHOUT_PRODUCTION = (PAPER, FIXED)


def points(quick: bool) -> Sequence[Point]:
    """Return a point to measure for each mechanism, case and seed, with and without the second look (choice by load).
    The idle queue belongs to the second look, so it is ablated only with the second look."""
    seeds, cases = (QUICK_SEEDS, QUICK_CASES) if quick else (SEEDS, CASES)
    return [
        _point(case, without, second_look=second_look, seed=seed)
        for seed in seeds
        for case in cases
        for second_look in LOOKS
        for without in _names(second_look=second_look)
    ]


def _point(case: str, without: str, *, second_look: bool, seed: int) -> Point:
    parameters = {"case": case, "without": without, "look": second_look, "seed": seed}
    pool = plan(parameters)
    floods = FLOOD_PER_S * (ENDS_S - BEGINS_S) if _floods in pool.events.values() else 0.0
    seconds = (pool.rate_per_s * pool.end_s + floods) / CONNECTIONS_PER_S
    return Point(f"{case}, without {without}, {LOOKS[second_look]} #{seed}", parameters, seconds)


def _variant(parameters: Mapping[str, Any]) -> Variant:
    if parameters["without"] == NO_IDLE_QUEUE:
        return Variant(second_look=WithoutIdleQueue)
    variant = MECHANISMS[parameters["without"]]
    return variant if parameters["look"] else replace(variant, second_look=None)


def plan(parameters: Mapping[str, Any]) -> PoolPlan:
    """Return the simulation's plan: the case's pool and events, with the mechanism switched off. R's period T is 1 s
    and its window mT is 10 s, as in the demo."""
    case, variant = parameters["case"], _variant(parameters)
    options = BalanceOptions(mode=variant.mode, period_s=PERIOD_S, window_s=WINDOW_S)
    options = replace(options, production=replace(options.production, **variant.options))
    if case in sim_unlike.CPUS:
        named = {"case": case, "variant": sim_unlike.EQUAL, "end_s": END_S, "seed": parameters["seed"]}
        return replace(sim_unlike.plan(named), options=options, second_look=variant.second_look)
    healthy = ServerPlan(work_s=WORK_S)
    count, loaded = LOADED_POOLS.get(case, POOL), 0
    if case in LOADED_POOLS:
        loaded = max(1, count // 10)
    return PoolPlan(
        servers=[*[healthy] * (count - loaded), *[replace(healthy, others=HOGS)] * loaded],
        options=options,
        rate_per_s=RATE_PER_SERVER * count,
        end_s=END_S,
        timeout_s=GIVEN_UP_S,
        lost_share=LOST_SHARE if case == STRAY else 0.0,
        second_look=variant.second_look,
        events=CAUSES.get(case, {}),
        seed=parameters["seed"],
    )


def measure(point: Point) -> Values:
    """Simulate a point, and return the figures of the run."""
    with substituted(_variant(point.parameters).parts):
        return values(simulate(plan(point.parameters)))


def values(run: PoolRun) -> Values:
    """Return the mean time in ms until a connection's answer is complete, the share of connections given up, and the
    number of weight changes."""
    begun = [connection for connection in run.connections if connection.begun_s < run.plan.end_s - GIVEN_UP_S]
    waits = [GIVEN_UP_S if each.done_s is None else min(each.done_s, GIVEN_UP_S) for each in begun]
    return {
        "mean_ms": 1000 * sum(waits) / len(waits),
        "given_up": sum(connection.done_s is None for connection in begun) / len(begun),
        "weight_changes": run.weight_changes,
    }


def _title(name: str) -> str:
    return name if name in WITHOUT_PRODUCTION else f"without {name}"


def _names(*, second_look: bool) -> list[str]:
    return [*MECHANISMS, *([NO_IDLE_QUEUE] if second_look else [])]


def _looked(records: Sequence[Record], *, second_look: bool) -> Ablation:
    figure = Measured("mean_ms", f"{LOOKS[second_look]}, ms", 0, LEAST_MS, fine_below=10.0)
    return Ablation(matching(records, look=second_look), CASES, figure)


def report(records: Sequence[Record]) -> Report:
    """Report two tables: with and without the second look (choice between drawn servers by load)."""
    looked = {second_look: _looked(records, second_look=second_look) for second_look in LOOKS}
    return Report(
        tables=[
            ablation.table({name: _title(name) for name in _names(second_look=second_look)})
            for second_look, ablation in looked.items()
        ],
        summary={
            LOOKS[second_look]: ablation.summary(_names(second_look=True)) for second_look, ablation in looked.items()
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the mean time without each mechanism relative to the mean time of production mode; significant differences
    are coloured."""
    panels = figure.subplots(1, 2, sharey=True)
    names = [name for name in _names(second_look=True) if name != WHOLE]
    for axes, second_look in zip(panels, LOOKS, strict=True):
        _looked(records, second_look=second_look).draw(axes, names, relative=True)
        axes.set_xscale("log")
        axes.set_xlabel(f"mean time, of production mode's ({LOOKS[second_look]})", fontsize="small")
    panels[0].set_yticks(range(len(names)), names, fontsize="small")


EXPERIMENT = Experiment(
    name="ablation",
    title="What each mechanism of production mode is worth, simulated",
    source="Beyond Ohta & Andou",
    about="Production mode without one mechanism at a time, by the same arrivals; a cause lasts from 60 to 120 s. "
    "Differences of the mean time to an answer, where giving up counts as 5 s: bold above 5 % and 1 ms.",
    points=points,
    compute=measure,
    report=report,
    draw=draw,
)
