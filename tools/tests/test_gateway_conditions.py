"""Checks that `tools.gateway_conditions` accepts conditions that a Tofino's gateway can evaluate, and refuses each kind
that a gateway cannot evaluate."""

import json
import os
from typing import Any

import pytest

from tools import gateway_conditions
from tools.p4 import BUILD

Json = dict[str, Any]

WIDTHS = {"ipv4.src": 32, "ipv4.dst": 32, "ethernet.dst": 48, "meta.mac": 48, "meta.length": 16}


def field(name: str) -> Json:
    return {"type": "field", "value": name.split(".")}


def number(value: int) -> Json:
    return {"type": "hexstr", "value": hex(value)}


def op(name: str, left: Json | None, right: Json) -> Json:
    return {"type": "expression", "value": {"op": name, "left": left, "right": right}}


@pytest.mark.parametrize(
    "condition",
    [
        op("==", field("meta.length"), number(5)),
        op("<", field("meta.length"), number(8)),
        op("==", op("&", op(">>", field("ethernet.dst"), number(16)), number(0xFFFFFFFF)), number(7)),
        op("!=", field("ipv4.src"), field("ipv4.dst")),
        op("and", op("d2b", None, field("tcp.$valid$")), op("not", None, op("==", field("ipv4.src"), number(0)))),
    ],
)
def test_what_a_gateway_decides(condition: Json) -> None:
    gateway_conditions.decide(condition, WIDTHS)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        (op("<", field("meta.length"), field("meta.length")), "two fields compared by '<'"),
        (op("==", field("ethernet.dst"), field("meta.mac")), "two fields of 48 bits"),
        (op("==", field("ethernet.dst"), number(0xFFFFFFFFFFFF)), "48 bits compared with a constant"),
        (op("==", op("+", field("meta.length"), number(1)), number(0)), r"'\+' in it"),
        (op("==", op("&", field("ipv4.src"), field("ipv4.dst")), number(0)), "'&' in it"),
        (op("not", None, op("==", op("usat_cast", field("ipv4.src"), number(16)), number(0))), "'usat_cast' in it"),
    ],
)
def test_what_it_does_not(condition: Json, said: str) -> None:
    with pytest.raises(gateway_conditions.ConditionError, match=said):
        gateway_conditions.decide(condition, WIDTHS)


def program(source: str) -> Json:
    return {
        "header_types": [{"name": "h", "fields": [["a", 16, False], ["b", 16, False]]}],
        "headers": [{"name": "x", "header_type": "h"}],
        "pipelines": [
            {
                "conditionals": [
                    {
                        "expression": op("<", field("x.a"), field("x.b")),
                        "source_info": {"filename": source, "line": 7},
                    }
                ]
            }
        ],
    }


def test_the_place_is_named_and_only_stages_are_held_to_it() -> None:
    (said,) = gateway_conditions.undecidable(program("p4src/v1model/../stages/rates.p4"))
    assert said.startswith("p4src/stages/rates.p4(7): two fields compared by '<'")
    assert list(gateway_conditions.undecidable(program("p4src/v1model/externs/pins.p4"))) == []


def test_the_stages_are_decidable() -> None:
    compiled = json.loads((BUILD / "sluice.json").read_text())
    conditionals = [each for pipeline in compiled["pipelines"] for each in pipeline["conditionals"]]
    sources = {each["source_info"]["filename"] for each in conditionals if "source_info" in each}
    assert any(os.path.normpath(source).startswith(gateway_conditions.STAGES) for source in sources)
    assert list(gateway_conditions.undecidable(compiled)) == []
