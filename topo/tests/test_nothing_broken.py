"""Tests with thousands of connections, made segment by segment, under drains, ejections and reloads. An observer at the
servers detects connections that reach two servers; the switch must count the same ones. `python -m experiments
nothing-broken` makes a million connections.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from sluice.names import CONNECTION_SLOTS, Register
from sluice.switch.pipeline import CODE, INFO, artefacts

from topo.labs.connections.lab import ConnectionsLab
from topo.labs.connections.programme import PRESSED, Plan, Programme, Result, bounded, exact
from topo.labs.connections.tuples import drawn
from topo.plan.network import VIP, WEB_PORT
from topo.tests import needs

pytestmark = needs.LONG

CORNER, PLAN = 64, Plan(2, 900, 4_300)
"""CORNER: the connections use a 64th of the table, which is 2 x 2,048 slots. PLAN: two waves of 900 connections,
less than a quarter of these slots, then 4,300 connections, more than all of them."""
UNPINNED = 0.025
"""Largest share of connections without a slot. With many connections the share is 1.2 %; with as few as here it
varies."""
NOTHING = "SluiceIngress.caps.cap_agreed"
"""Name of a register that is always empty; its 63 bits are as wide as a key of the connection table."""


def run(plan: Plan, pipeline: Path | None = None) -> Result:
    tuples = drawn(plan.tuples, str(VIP), WEB_PORT, slots=CONNECTION_SLOTS, corner=CORNER, seed=1)
    with ConnectionsLab(tuples, pipeline) as lab:
        return Programme(lab, plan, print).run()


def test_whoever_has_a_slot_stays_and_the_others_are_counted() -> None:
    result = run(PLAN)
    assert result.lost == 0 and result.ejections == PLAN.waves and result.weight_changes > 0
    for phase in result.phases:
        assert (phase.strayed_pinned, phase.broken_pinned, phase.astray) == (0, 0, 0), phase
        assert exact(asdict(phase)) and bounded(asdict(phase)), phase
        if phase.name != PRESSED:
            assert 0 < phase.unpinned <= UNPINNED * phase.connections and phase.moved > 0
    pressed = result.phases[-1]
    assert pressed.unpinned > pressed.strayed == pressed.broken > 0, "the fourth server takes some of those without"


def test_a_program_that_forgets_pins_is_seen_by_both(tmp_path: Path) -> None:
    (result,) = run(Plan(1, 500, 0), forgetful(tmp_path)).phases
    assert result.strayed_pinned > 100 and result.broken_pinned > 100
    assert result.resets >= result.switch.disowned > 100


def forgetful(folder: Path) -> Path:
    """Write a faulty P4 program and return its folder: a client's packets other than SYNs look up their keys in an
    empty register."""
    built = artefacts()
    program = json.loads((built / CODE).read_text())
    reads = [
        primitive
        for action in program["actions"]
        for primitive in action["primitives"]
        if primitive["op"] == "register_read"
    ]
    keys = [read for read in reads if read["parameters"][1]["value"] in (Register.PIN_KEY_1, Register.PIN_KEY_2)]
    assert len(keys) == 6, "the program is another one than this test knows"
    for key in sorted(keys, key=lambda key: key["source_info"]["line"])[-2:]:
        key["parameters"][1]["value"] = NOTHING
    (folder / CODE).write_text(json.dumps(program))
    (folder / INFO).write_text((built / INFO).read_text())
    return folder
