"""Checks that `tools.register_touches` refuses programs with register accesses that a stateful unit cannot execute, and
accepts the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.register_touches import TouchError, prove

ROOT = Path(__file__).resolve().parents[2]

Json = dict[str, Any]
A: Json = {"type": "field", "value": ["scalars", "a"]}
B: Json = {"type": "field", "value": ["scalars", "b"]}


def read(register: str, cell: Json = A) -> Json:
    target = {"type": "field", "value": ["scalars", "value"]}
    return {"op": "register_read", "parameters": [target, {"type": "register_array", "value": register}, cell]}


def write(register: str, cell: Json = A) -> Json:
    value = {"type": "hexstr", "value": "0x01"}
    return {"op": "register_write", "parameters": [{"type": "register_array", "value": register}, cell, value]}


def table(name: str, action: int, following: str | None) -> Json:
    return {
        "name": name,
        "action_ids": [action],
        "actions": [f"a{action}"],
        "next_tables": {f"a{action}": following},
        "default_entry": {},
    }


def program(*actions: list[Json], conditionals: tuple[Json, ...] = (), follow: tuple[str | None, ...] = ()) -> Json:
    """Return a program of tables t0, t1, ... with one action each. The first of `conditionals` is the first node, or t0
    if there are none; `follow` lists the next node of each table (by default the next table)."""
    following = follow or (*(f"t{i + 1}" for i in range(len(actions) - 1)), None)
    return {
        "actions": [{"id": i, "name": f"a{i}", "primitives": list(primitives)} for i, primitives in enumerate(actions)],
        "pipelines": [
            {
                "init_table": conditionals[0]["name"] if conditionals else "t0",
                "tables": [table(f"t{i}", i, following[i]) for i in range(len(actions))],
                "conditionals": list(conditionals),
            }
        ],
    }


def test_read_then_write_of_one_cell_is_one_touch() -> None:
    assert prove(program([read("r"), write("r")])) == {"r"}
    assert prove(program([read("r")], [write("r")])) == {"r"}


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param(([read("r")], [read("r")]), id="two reads"),
        pytest.param(([write("r")], [write("r")]), id="two writes"),
        pytest.param(([write("r"), read("r")],), id="write, then read"),
        pytest.param(([read("r", A), write("r", B)],), id="two cells"),
        pytest.param(([read("r"), write("r")], [], [read("r")]), id="far apart"),
    ],
)
def test_second_touch_is_found(actions: tuple[list[Json], ...]) -> None:
    with pytest.raises(TouchError, match=r"^r: a (read|write) of .* on the same path"):
        prove(program(*actions))


def test_two_branches_may_touch_the_same_register() -> None:
    fork = {"name": "c", "true_next": "t0", "false_next": "t1"}
    assert prove(program([read("r")], [read("r")], conditionals=(fork,), follow=(None, None))) == {"r"}


def test_branches_that_meet_again_are_followed() -> None:
    fork = {"name": "c", "true_next": "t0", "false_next": "t1"}
    with pytest.raises(TouchError, match="in t2"):
        prove(program([read("r")], [], [read("r")], conditionals=(fork,), follow=("t2", "t2", None)))


def test_an_index_that_changes_between_read_and_write_is_another_cell() -> None:
    assign = {"op": "assign", "parameters": [A, {"type": "hexstr", "value": "0x07"}]}
    with pytest.raises(TouchError, match="r: a write"):
        prove(program([read("r"), assign, write("r")]))


def test_sluice_itself() -> None:
    text = (ROOT / "p4src/build/sluice.json").read_text()
    met = {name.rsplit(".", 1)[1] for name in prove(json.loads(text))}
    assert {"pin_key_1", "pin_key_2", "pin_server_1", "pin_server_2", "candidate_key", "candidate_pin"} <= met
    assert {"ledger_syn", "ledger_synack", "ledger_synack_again", "ledger_completed", "ledger_reset"} <= met
