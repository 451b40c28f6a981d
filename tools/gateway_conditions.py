"""Proves over compiled BMv2 JSON that the stages' conditions are ones that a Tofino can decide.

A gateway compares: a field, or bits of it, with a constant, over at most 44 bits; or two fields of at most 32 bits for
equality. It cannot add, and it has no "less than" between fields. p4c moves what is computed in an apply block
into the conditions that use it; what a condition tests is therefore computed in actions. Exit status 1, and the places,
where a condition does more.

Only conditions that come from p4src/stages are held to it: those of p4src/v1model are BMv2's own. So are those with no
place: whether a table was hit, and `later` of common/types.p4, which no stage calls.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]

STAGES = "p4src/stages/"
CONSTANT_BITS = 44
"""Most bits that a gateway can compare with constants: 32 bits of its input bytes and 12 bits of a hash."""
FIELD_BITS = 32
"""Width in bits of the widest fields that a gateway can compare with each other."""
COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
LOGIC = {"and", "or", "not"}


class ConditionError(Exception):
    """A condition that a gateway cannot decide, with the reason."""


def widths(program: Json) -> dict[str, int]:
    """Return the width in bits of every field, by `header.field`."""
    types = {kind["name"]: kind["fields"] for kind in program["header_types"]}
    return {
        f"{header['name']}.{field[0]}": field[1]
        for header in program["headers"]
        for field in types[header["header_type"]]
        if isinstance(field[1], int)
    }


def constant(operand: Json | None) -> int | None:
    """Return the value of a constant; None for any other operand."""
    return int(operand["value"], 16) if operand and operand["type"] == "hexstr" else None


def bits(operand: Json, known: Mapping[str, int]) -> int | None:
    """Return the width of a field or of a field's slice, None for a constant. Raises ConditionError when computed."""
    if operand["type"] == "expression":
        inner: Json = operand["value"]
        if "op" not in inner:
            return bits(inner, known)
        amount = constant(inner["right"])
        if amount is not None and inner["op"] in ("&", ">>"):
            width = bits(inner["left"], known)
            if width is not None:
                return min(width, amount.bit_length()) if inner["op"] == "&" else width - amount
        raise ConditionError(f"a condition with {inner['op']!r} in it: compute it in an action")
    if operand["type"] == "field":
        return known.get(".".join(operand["value"]), 1)
    return None


def decide(expression: Json, known: Mapping[str, int]) -> None:
    """Check a condition. Raises ConditionError where a gateway cannot decide it."""
    if expression["type"] != "expression":
        return
    value: Json = expression["value"]
    if "op" not in value:
        decide(value, known)
    elif value["op"] in LOGIC:
        for side in ("left", "right"):
            if value[side]:
                decide(value[side], known)
    elif value["op"] == "d2b":
        bits(value["right"], known)
    elif value["op"] in COMPARISONS:
        compare(value, known)
    else:
        raise ConditionError(f"a condition with {value['op']!r} in it: compute it in an action")


def compare(value: Json, known: Mapping[str, int]) -> None:
    """Check a comparison. Raises ConditionError where a gateway cannot make it."""
    left, right = (bits(value[side], known) for side in ("left", "right"))
    if left is not None and right is not None:
        if value["op"] not in ("==", "!="):
            raise ConditionError(f"two fields compared by {value['op']!r}: subtract them with |-| in an action")
        if max(left, right) > FIELD_BITS:
            raise ConditionError(f"two fields of {max(left, right)} bits compared: at most {FIELD_BITS}")
    elif (left or right or 0) > CONSTANT_BITS:
        raise ConditionError(f"{left or right} bits compared with a constant: at most {CONSTANT_BITS}")


def undecidable(program: Json) -> Iterator[str]:
    """Yield a message for every condition of the stages that a gateway cannot decide, with place and reason."""
    known = widths(program)
    for pipeline in program["pipelines"]:
        for conditional in pipeline["conditionals"]:
            source = conditional.get("source_info", {})
            place = os.path.normpath(source.get("filename", ""))
            if not place.startswith(STAGES):
                continue
            try:
                decide(conditional["expression"], known)
            except ConditionError as error:
                yield f"{place}({source['line']}): {error}"


def main() -> int:
    """Check the programs named on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Proves that a Tofino can decide the stages' conditions.")
    parser.add_argument("program", type=Path, nargs="+", help="BMv2 JSON")
    failed = False
    for path in parser.parse_args().program:
        said = list(undecidable(json.loads(path.read_text())))
        failed = failed or bool(said)
        for line in said:
            print(f"{path}: {line}", file=sys.stderr)
        if not said:
            print(f"{path}: every condition of the stages is a comparison that a gateway can make")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
