"""The pool of R's experiments by simulation: three servers, one of them loaded, nothing fitted to the lab."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sluice.balance import BalanceOptions, Mode

from experiments.experiment import Values
from experiments.webpool import times
from sim.demo import PAGE_S
from sim.pool import Connection, PoolPlan, ServerPlan, simulate
from sim.secondlook import SecondLook
from topo.handshakes import ConnectTimes
from topo.plan import SERVER_CPUS, SERVER_NAMES
from topo.stress import HOGS

GIVEN_UP_S = 5.0
PAGE_WAY_S = 0.75e-3
"""Half of the lab's transfers take less than 1.15 ms, of which the handshake and the page's CPU time have 0.2 each."""
LOADED = SERVER_NAMES[-1]


def simulated(parameters: Mapping[str, Any]) -> Values:
    """Simulate the lab's pool: three servers, the last one sharing its CPU with the tasks of `stress`.

    Nothing is fitted: a page costs what it was measured to cost,
    unless `work_s` (CPU time, in seconds) says otherwise. Paper mode unless `mode` says otherwise; a `second_look` if
    it is asked for.
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
    run = simulate(
        PoolPlan(
            servers,
            options,
            parameters["rate_per_s"],
            parameters["seconds"],
            timeout_s=GIVEN_UP_S,
            page_way_s=PAGE_WAY_S,
            look=SecondLook if parameters.get("second_look") else None,
            seed=parameters["seed"],
        )
    )

    def between(start: float, end: float, reached_s: Callable[[Connection], float | None]) -> ConnectTimes:
        begun = [one for one in run.connections if start <= one.begun_s < end]
        reached = [seconds for one in begun if (seconds := reached_s(one)) is not None]
        return ConnectTimes(len(begun), len(begun) - len(reached), reached)

    end = parameters["seconds"]
    last = end - GIVEN_UP_S
    return {
        "ratios": [
            [decision.time_s, *(decision.ratios[number] for number in range(len(SERVER_NAMES)))]
            for decision in run.decisions[0]
        ],
        "connect": times(between(0.0, last, lambda one: one.connect_s), GIVEN_UP_S),
        "late": times(between(end * 2 / 3, last, lambda one: one.connect_s), GIVEN_UP_S),
        "transfer": times(between(0.0, last, lambda one: one.done_s), GIVEN_UP_S),
        "loaded_syns": run.counts[len(SERVER_NAMES) - 1].syn / sum(counts.syn for counts in run.counts.values()),
    }
