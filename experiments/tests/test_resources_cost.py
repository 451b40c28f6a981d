"""Tests of the experiment on the cost of sharing buffers: the report, and the load, which must be as documented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sluice.names import TRANSFERS
from sluice.switch import transfers

from experiments import resources_cost
from experiments.experiment import Record
from experiments.resources_cost import DECIDE, EVERY, FEW, MANY, WHOLE, Load


def record(what: str, servers: int, change: str, ms: float, cpu_ms: float) -> Record:
    phase = {"ms": ms, "worst_ms": 2 * ms, "cpu_ms": cpu_ms}
    names = ("whole", "read", "write") if what == WHOLE else ("decide",)
    parameters: Mapping[str, Any] = {
        "what": what,
        "servers": servers,
        "slots": TRANSFERS if what == WHOLE else MANY,
        "change": change,
        "rounds": 8,
    }
    return Record(str(parameters), parameters, {**dict.fromkeys(names, phase), "written": 7.0}, 0.0, 1.0, 0.0)


def test_the_slowest_size_decides() -> None:
    records = [
        record(DECIDE, 1, EVERY, 40.0, 39.0),
        record(DECIDE, 1000, EVERY, 130.0, 120.0),
        record(WHOLE, 1, EVERY, 60.0, 30.0),
        record(WHOLE, 1000, FEW, 50.0, 101.0),
    ]
    report = resources_cost.report(records)
    assert [(goal.reached, goal.seen) for goal in report.goals] == [
        (False, "120.0 ms, 1,000 servers, every cap changes"),
        (True, "60.0 ms, 1 server, every cap changes"),
        (False, "101.0 ms, 1,000 servers, few caps change"),
    ]
    assert report.tables[0].rows[2][-3:] == ["60.0 (30.0)", "120", "3.0 %"]
    resources_cost.EXPERIMENT.draw(records, Figure())
    assert [goal.reached for goal in resources_cost.report([]).goals] == [None] * 3


def test_every_slot_has_a_transfer_and_what_changes_is_as_many_as_it_says() -> None:
    changed: dict[str, int] = {}
    for change in (EVERY, FEW):
        load = Load(10, TRANSFERS, change)
        first, second = (transfers.decode(load.cells(turn, range(1, 11))) for turn in (4, 5))
        assert (first.flow == np.arange(TRANSFERS)).all() and (first.fingerprint == second.fingerprint).all()
        reading = second.since(first)
        assert not reading.is_new.any() and (reading.segments == 1000).all() and (reading.losses == 1).all()
        assert np.bincount(first.server).tolist()[1:] == [410] * 6 + [409] * 4
        changed[change] = int((first.flight != second.flight).sum())
    assert changed[EVERY] > 0.95 * TRANSFERS and 0 < changed[FEW] < 0.03 * TRANSFERS
