"""CPU time of the slow server beyond the configured cost of a turn (work for one block of an answer): per request, and
per turn.

Run `python -m experiments.servercost` as root. Requests of one size at a time arrive at a rate that the server
sustains, through the lab's switch without flash-crowd control. The two costs follow from the CPU times of a short and
of a long answer. The simulation uses these costs (`sim.lab`).
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from topo.labs.crowds.network import CrowdLab
from topo.load.client import ReplayClients
from topo.load.server import BLOCK_BYTES
from topo.plan.crowd.network import CROWD, PORT, TARGET, TARGET_ADDRESS
from topo.plan.crowd.scenarios import NONE, SERVER, Settings
from topo.plan.outcomes import Ending, read_outcomes
from topo.plan.requests import Request, write_log
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError
from topo.testbed.interrupts import run_command
from topo.testbed.nodes import switch_kind

LOADS = ((1, 200.0), (8, 60.0))
"""Loads: turns of an answer (one turn for each block), and requests per second. The loads need a third and a half of
the server's CPU limit."""
SECONDS = 10.0
LEAD_S, END_S = 2.0, 1.0
REPETITIONS = 5


@dataclass(frozen=True, slots=True)
class Beside:
    """CPU time beyond the configured cost of turns (work for one block of an answer), in microseconds."""

    request_us: float
    turn_us: float


def beside(loads: Sequence[tuple[int, float]], turn_cost_us: float) -> Beside:
    """Compute the costs per request and per turn from two loads, each with turns and CPU microseconds of a request."""
    (few, short_us), (many, long_us) = loads
    each_us = (long_us - short_us) / (many - few)
    return Beside(short_us - few * each_us, each_us - turn_cost_us)


def request_us(lab: CrowdLab, turns: int, rate_per_s: float, number: int) -> float:
    """Load the slow server with answers of `turns` blocks, and return the CPU time of a request in microseconds.

    Raises SetupError if the server did not answer all requests.
    """
    host = CROWD[0]
    count = round(rate_per_s * SECONDS)
    log, output = (lab.directory / f"cost-{turns}-{number}{end}" for end in (".log.csv", ".csv"))
    write_log(log, [Request(number / rate_per_s, number, TARGET, turns * BLOCK_BYTES) for number in range(count)])
    before_s = lab.slow.used_s()
    clients = ReplayClients(
        str(log),
        str(host.pool),
        {TARGET: f"{TARGET_ADDRESS}:{PORT}"},
        time.time() + LEAD_S,
        SECONDS + END_S,
        str(output),
    )
    client = lab.start_program(clients, host.name)
    if client.wait(LEAD_S + SECONDS + END_S + LEAD_S):
        client.require_running()
    answered = sum(outcome.ending is Ending.FINISHED for outcome in read_outcomes(output))
    if answered < count:
        raise SetupError(f"the slow server answered {answered} of {count} requests: something else uses its CPU")
    return 1e6 * (lab.slow.used_s() - before_s) / count


def measure(kind: str) -> list[Beside]:
    """Measure the costs per request and per turn repeatedly in one lab."""
    settings = SERVER.settle(Settings())

    costs: list[Beside] = []
    with CrowdLab(kind, settings, SERVER.server, news=NONE.news(settings)) as lab:
        for number in range(REPETITIONS):
            loads = [(turns, request_us(lab, turns, rate_per_s, number)) for turns, rate_per_s in LOADS]
            costs.append(cost := beside(loads, settings.slow_turn_us))
            seen = ", ".join(f"{us:.0f} us with {turns}" for turns, us in loads)
            print(f"{seen}: {cost.request_us:.0f} us a request and {cost.turn_us:.0f} us a turn beside the turns' cost")
    return costs


def main() -> int:
    """Run the measurement from the command line; return the exit code."""

    def work() -> int:
        costs = measure(switch_kind())
        request, turn = (statistics.median(values) for values in zip(*(astuple(cost) for cost in costs), strict=True))
        print(f"medians: {request:.0f} us a request, {turn:.0f} us a turn")
        return 0

    return run_command("servercost", work, REPOSITORY)


if __name__ == "__main__":
    sys.exit(main())
