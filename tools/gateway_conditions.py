"""Checks, in compiled BMv2 JSON, that a Tofino can evaluate the conditions of the stages.

A gateway (Tofino's unit for conditions) compares either a field, or bits of a field, with a constant, over at most 44
bits; or two fields of at most 32 bits for equality. It cannot add, and it has no "less than" between fields. p4c moves
expressions that an apply block computes into the conditions that use them; therefore values that a condition tests are
computed in actions. If a condition needs more, the tool prints the location and exits with status 1.

Only conditions in p4src/stages are checked: those in p4src/v1model are only for BMv2. Conditions without a source
location are not checked either: whether a table was hit, and `later` of common/types.p4, which no stage calls.
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
"""The largest number of bits that a gateway can compare with constants: 32 bits of its input bytes and 12 of a hash."""
FIELD_BITS = 32
"""The width in bits of the widest fields that a gateway can compare with each other."""
COMPARISONS = {"==", "!=", "<", ">", "<=", ">="}
LOGIC = {"and", "or", "not"}


class ConditionError(Exception):
    """A gateway cannot evaluate a condition; the message states the reason."""


def widths(program: Json) -> dict[str, int]:
    """Return the width in bits of every field, by the field's name `header.field`."""
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
    """Return the width of a field or of a slice of a field; None for a constant. Raises ConditionError if the operand
    is computed."""
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
    """Check a condition. Raises ConditionError if a gateway cannot evaluate it."""
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
    """Check a comparison. Raises ConditionError if a gateway cannot evaluate it."""
    left, right = (bits(value[side], known) for side in ("left", "right"))
    if left is not None and right is not None:
        if value["op"] not in ("==", "!="):
            raise ConditionError(f"two fields compared by {value['op']!r}: subtract them with |-| in an action")
        if max(left, right) > FIELD_BITS:
            raise ConditionError(f"two fields of {max(left, right)} bits compared: at most {FIELD_BITS}")
    elif (left or right or 0) > CONSTANT_BITS:
        raise ConditionError(f"{left or right} bits compared with a constant: at most {CONSTANT_BITS}")


def undecidable(program: Json) -> Iterator[str]:
    """Yield a message, with location and reason, for every condition of the stages that a gateway cannot evaluate."""
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
