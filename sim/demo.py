"""The demo's two phases, simulated at the lab's rates and with its servers: an equal split, then R as published."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sluice.balance import BalanceOptions, Mode

from topo.plan.load import HOGS

from .arrivals import as_in_the_lab
from .balancing import Pin
from .cpu import Task
from .pool import Connection, PoolPlan, PoolRun, ServerPlan, Simulation, simulate

EQUAL_S, PAUSE_S, R_S = 45.0, 5.5, 70.0
"""Seconds of the demo's first phase, of the pause and of the second phase (topo/demo/phases.py). In the pause the first
phase's connections end."""
PAGE_S = 0.2e-3
"""CPU seconds of one page. Traced in the lab: 0.19 to 0.22 ms."""
READERS = 6
DOWNLOAD_PAGES, PAGES_PER_S = 30, 1.2
"""In the second phase ``READERS`` clients repeatedly download a file of 3 MB at 120 KB/s, that is, ``DOWNLOAD_PAGES``
pages of 100 KB at ``PAGES_PER_S``. Each reader occupies a worker, which spends ``PAGE_S`` of CPU time per page."""


@dataclass(frozen=True, slots=True)
class Phases:
    """A run, and its connections in the phase with the equal split and in the phase under R."""

    run: PoolRun
    equal: list[Connection]
    by_r: list[Connection]


def simulate_demo(rate_per_s: float, seed: int) -> Phases:
    """Simulate the demo; no parameter is fitted to the lab's results."""
    healthy = ServerPlan(work_s=PAGE_S)
    options = BalanceOptions(mode=Mode.FIXED, period_s=1.0, window_s=10.0)

    def by_r(simulation: Simulation) -> None:
        for _ in range(READERS):
            _Reader(simulation)
        for switch in simulation.switches:
            switch.configure(replace(options, mode=Mode.PAPER))
        simulation.load(rate_per_s)

    start = EQUAL_S + PAUSE_S
    run = simulate(
        PoolPlan(
            servers=[healthy, healthy, replace(healthy, others=HOGS)],
            options=options,
            rate_per_s=rate_per_s,
            end_s=start + R_S + PAUSE_S,
            events={EQUAL_S: lambda simulation: simulation.load(0.0), start: by_r, start + R_S: _silence},
            arrivals=as_in_the_lab,
            seed=seed,
        )
    )
    return Phases(
        run,
        [connection for connection in run.connections if connection.begun_s < EQUAL_S],
        [connection for connection in run.connections if connection.begun_s >= start],
    )


class _Reader:
    """A reader that downloads one long file after another. The switch balances the reader's connections like all other
    connections, but a server accepts each of them at once, even if its accept queue is full."""

    def __init__(self, simulation: Simulation) -> None:
        self._run = simulation
        self._begin()

    def _begin(self) -> None:
        switch = self._run.switches[0]
        server = switch.syn(Pin())
        switch.synack(server)
        switch.completed(server)
        self._run.servers[server].hold(1)
        self._page(server, DOWNLOAD_PAGES)

    def _page(self, server: int, left: int) -> None:
        if left == 0:
            self._run.servers[server].hold(-1)
            self._begin()
            return
        self._run.servers[server].cpu.add(Task(), self._run.plan.servers[server].work_s, _nothing)
        self._run.clock.after(1 / PAGES_PER_S, self._page, server, left - 1)


def _nothing() -> None:
    pass


def _silence(simulation: Simulation) -> None:
    simulation.load(0.0)
