"""Simulation of the pool of R's lab experiments: three servers, one of which is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sluice.balance import BalanceOptions, Mode

from experiments.experiment import Values
from experiments.webpool import times
from sim.arrivals import as_in_the_lab
from sim.demo import PAGE_S
from sim.pool import PoolPlan, PoolRun, ServerPlan, Simulation, simulate
from sim.secondlook import SecondLook
from topo.measure.handshakes import ConnectTimes
from topo.plan.load import HOGS
from topo.plan.network import SERVER_CPUS, SERVER_NAMES

GIVEN_UP_S = 5.0
PAGE_WAY_S = 0.75e-3
"""Seconds from the end of a page's CPU work until the client has received the page. The median of the lab's transfers
is 1.15 ms, of which the handshake and the page's CPU work take 0.2 ms each."""
LOADED = SERVER_NAMES[-1]


def simulated(parameters: Mapping[str, Any]) -> Values:
    """Simulate the lab's pool: three servers, the last of which shares its CPU with the tasks of `stress`.

    The parameter `work_s` sets the CPU seconds of a page, by default as measured in the lab. A page reaches the client
    after PAGE_WAY_S. `mode` is paper mode by default. `second_look` (choice by load) and httperf's arrivals (`httperf`)
    are used if set.
    """
    work_s = parameters.get("work_s", PAGE_S)
    options = BalanceOptions(
        mode=Mode(parameters.get("mode", Mode.PAPER)),
        period_s=parameters["period_s"],
        window_s=parameters["window_s"],
        delta=parameters["delta"],
    )
    healthy = ServerPlan(cpus=SERVER_CPUS, work_s=work_s)
    servers = [replace(healthy, others=HOGS) if name == LOADED else healthy for name in SERVER_NAMES]
    run = simulate_load(
        PoolPlan(
            servers,
            options,
            parameters["rate_per_s"],
            parameters["seconds"],
            timeout_s=GIVEN_UP_S,
            page_way_s=PAGE_WAY_S,
            arrivals=as_in_the_lab if parameters.get("httperf") else None,
            second_look=SecondLook if parameters.get("second_look") else None,
            seed=parameters["seed"],
        )
    )
    end = parameters["seconds"]
    return {
        "ratios": [
            [decision.time_s, *(decision.ratios[number] for number in range(len(SERVER_NAMES)))]
            for decision in run.decisions[0]
            if decision.time_s < end
        ],
        **times_between(run, 0.0, end),
        "late": times_between(run, end * 2 / 3, end)["connect"],
        "loaded_syns": run.counts[len(SERVER_NAMES) - 1].syn / sum(counts.syn for counts in run.counts.values()),
    }


def simulate_load(plan: PoolPlan) -> PoolRun:
    """Simulate a load that ends at the plan's end, as the lab's loads do, and continue until each connection is
    answered or given up."""
    return simulate(replace(plan, end_s=plan.end_s + plan.timeout_s, events={plan.end_s: _end}))


def _end(simulation: Simulation) -> None:
    simulation.load(0.0)


def times_between(run: PoolRun, start_s: float, end_s: float) -> Values:
    """Return statistics of connect and transfer times of the connections that began in [start_s, end_s)."""
    begun = [connection for connection in run.connections if start_s <= connection.begun_s < end_s]
    connect = [connection.connect_s for connection in begun if connection.connect_s is not None]
    done = [connection.done_s for connection in begun if connection.done_s is not None]
    return {
        name: times(ConnectTimes(len(begun), reached), run.plan.timeout_s)
        for name, reached in (("connect", connect), ("transfer", done))
    }
