"""Production mode with its second look for `sim-lab`: the pool of R's experiments, in the lab and simulated."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.agreement import PART, percent
from experiments.experiment import Goal, Point, Record, Say, Table, Values
from experiments.intervals import Mean, chance, mean_of
from experiments.simpool import GIVEN_UP_S, LOADED, simulated
from experiments.variants import PERIOD_S, PRODUCTION, WINDOW_S
from experiments.webpool import pool, total
from topo.httperf import Load
from topo.plan import THREE

RATE_PER_S, LOAD_S = 120.0, 60.0
SEEDS_A_RUN = 5
LAB_ENDS_S, SIMULATED_S = 15.0, 5.0
FIGURES = {
    "connect_ms": ("connect, mean (ms)", 1),
    "connect_p99_ms": ("connect, p99", 0),
    "transfer_ms": ("whole transfer, mean (ms)", 1),
    "transfer_p99_ms": ("whole transfer, p99", 0),
    "given_up": ("given up (share)", 3),
    "loaded_syns": ("SYNs to the loaded server (share)", 3),
    "loaded_ratio": ("its ratio, mean of the last third", 3),
}


def points(number: int) -> list[Point]:
    """The pool once, and its simulations."""
    seeds = list(range(SEEDS_A_RUN * number + 1, SEEDS_A_RUN * (number + 1) + 1))
    parameters = {
        "pool": PRODUCTION.name,
        "rate_per_s": RATE_PER_S,
        "seconds": LOAD_S,
        "seeds": seeds,
        "run": number,
    }
    key = f"pool {PRODUCTION.name} {RATE_PER_S:g}/s {LOAD_S:g} s #{number}"
    return [Point(key, parameters, LOAD_S + LAB_ENDS_S + SIMULATED_S, "lab")]


def measure(parameters: Mapping[str, Any], say: Say) -> Values:
    """Open a lab and load it, then simulate the same."""
    with pool(PRODUCTION.open(say, THREE)) as one:
        one.lab.break_server(LOADED)
        lab = one.run(Load(parameters["rate_per_s"], parameters["seconds"], GIVEN_UP_S))
    asked = {
        "rate_per_s": parameters["rate_per_s"],
        "seconds": parameters["seconds"],
        "mode": "production",
        "second_look": True,
        "period_s": PERIOD_S,
        "window_s": WINDOW_S,
        "delta": 0.1,
    }
    syns = lab["servers"][LOADED]["syn"] / total(lab["servers"], "syn")
    runs = [simulated({**asked, "seed": seed}) for seed in parameters["seeds"]]
    return {
        "lab": figures({**lab, "loaded_syns": syns}),
        "simulated": [figures(one) for one in runs],
        "switch": lab["switch"],
    }


def figures(run: Values) -> dict[str, float]:
    """Return a run's figures, of the lab or simulated."""
    last = [row[-1] for row in run["ratios"][len(run["ratios"]) * 2 // 3 :]]
    return {
        **{
            f"{kind}_{name}": run[kind][figure]
            for kind in ("connect", "transfer")
            for name, figure in (("ms", "mean_ms"), ("p99_ms", "p99_ms"))
        },
        "given_up": run["connect"]["given_up"] / run["connect"]["begun"],
        "loaded_syns": run["loaded_syns"],
        "loaded_ratio": statistics.fmean(last),
    }


def _seen(records: Sequence[Record], name: str) -> tuple[Mean, Mean]:
    lab = mean_of([one.result["lab"][name] for one in records])
    return lab, mean_of([one[name] for run in records for one in run.result["simulated"]])


def table(records: Sequence[Record]) -> Table:
    """Lab and simulation side by side."""
    title = f"production mode with its second look, {RATE_PER_S:g}/s"
    rows = [[label, *(one.text(digits) for one in _seen(records, name))] for name, (label, digits) in FIGURES.items()]
    return Table([title, "lab", "simulated"], rows)


def goals(records: Sequence[Record]) -> list[Goal]:
    """Hold the whole transfer's mean against the lab's."""
    if not records:
        return []
    lab, simulated_too = _seen(records, "transfer_ms")
    part = simulated_too.value / lab.value - 1
    return [
        Goal(
            f"production mode with its second look: mean of the whole transfer within {PART:.0%} of the lab's",
            abs(part) <= PART,
            f"{percent(part)}{chance(lab, simulated_too)}",
        )
    ]
