"""The demo's two phases, simulated: an equal split, then R as published, at the lab's rates and with its servers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice.balance import BalanceOptions, Mode

from .pool import Connection, PoolPlan, PoolRun, ServerPlan, Simulation, simulate

EQUAL_S, PAUSE_S, R_S = 45.0, 5.5, 70.0
"""Of the demo (topo/demo.py); the pause lets the last connections of the first phase end."""
WORKERS, BACKLOG, CPUS = 10, 16, 0.1
STRESS_TASKS = 24
HELD = 2
"""Workers of each server that the demo's six long downloads keep in the second phase."""


def work_s(answered_per_s: float) -> float:
    """CPU time of a request, from how many per second the loaded server answers while it is overloaded.

    All workers are then busy, and with ``stress`` they share the CPU limit.
    """
    return CPUS * WORKERS / (WORKERS + STRESS_TASKS) / answered_per_s


@dataclass(frozen=True, slots=True)
class Phases:
    """Both phases, and the run that they are from."""

    run: PoolRun
    equal: list[Connection]
    by_r: list[Connection]


def simulate_demo(rate_per_s: float, request_work_s: float, seed: int) -> Phases:
    """Run it."""
    healthy = ServerPlan(cpus=CPUS, work_s=request_work_s, workers=WORKERS, backlog=BACKLOG)
    options = BalanceOptions(mode=Mode.FIXED, period_s=1.0, window_s=10.0)

    def by_r(simulation: Simulation) -> None:
        for server in simulation.servers:
            server.hold(HELD)
        for switch in simulation.switches:
            switch.configure(replace(options, mode=Mode.PAPER))
        simulation.load(rate_per_s)

    start = EQUAL_S + PAUSE_S
    run = simulate(
        PoolPlan(
            servers=[healthy, healthy, replace(healthy, others=float(STRESS_TASKS))],
            options=options,
            rate_per_s=rate_per_s,
            end_s=start + R_S + PAUSE_S,
            events={EQUAL_S: lambda simulation: simulation.load(0.0), start: by_r, start + R_S: _silence},
            seed=seed,
        )
    )
    return Phases(
        run,
        [one for one in run.connections if one.begun_s < EQUAL_S],
        [one for one in run.connections if one.begun_s >= start],
    )


def _silence(simulation: Simulation) -> None:
    simulation.load(0.0)
