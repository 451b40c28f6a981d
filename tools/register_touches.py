"""Proves over compiled BMv2 JSON that no packet touches a register twice in one pass of a pipeline.

A touch is what a switch ASIC's stateful unit does once per packet: one read, one write, or a read and then a write of
the same cell. The control flow of a pipeline is a directed acyclic graph of conditionals and tables; the proof follows
every register along every path of it (paths with the same touches so far are followed once) and looks inside every
action in order. Exit status 1, and the offending path, when a register is touched twice.

Resubmitted packets are separate passes: each is held to the rule on its own.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class TouchError(Exception):
    """A path on which a register is touched twice."""


@dataclass(frozen=True)
class Index:
    """Which cell: the index, written out, and the fields it is made of."""

    text: str
    fields: frozenset[str]


CHANGED = Index("a cell whose index has changed since", frozenset())


@dataclass(frozen=True)
class Touch:
    """What has been done to a register on a path so far, and to which cell."""

    reads: int
    writes: int
    cell: Index


Touches = Mapping[str, Touch]


def index(operand: Any, local: Mapping[str, Index]) -> Index:
    """An operand as an index; fields that this action has assigned are replaced by what they were assigned."""
    if isinstance(operand, dict) and operand.get("type") == "field":
        name = ".".join(operand["value"])
        return local.get(name, Index(name, frozenset([name])))
    if isinstance(operand, dict):
        parts = {key: index(value, local) for key, value in sorted(operand.items())}
        text = " ".join(f"{key}:{part.text}" for key, part in parts.items())
        return Index(f"({text})", frozenset().union(*(part.fields for part in parts.values())))
    return Index(str(operand), frozenset())


def touched(touches: Touches, register: str, write: bool, cell: Index, where: str) -> Touches:
    """The touches after one more access; TouchError when that makes a second touch."""
    before = touches.get(register)
    if before is None:
        return {**touches, register: Touch(int(not write), int(write), cell)}
    if write and before.writes == 0 and before.cell == cell:
        return {**touches, register: Touch(before.reads, 1, cell)}
    raise TouchError(
        f"{register}: a {'write' if write else 'read'} of {cell.text} in {where}, after {before.reads} reads and "
        f"{before.writes} writes of {before.cell.text} on the same path"
    )


def executed(touches: Touches, action: Json, where: str) -> Touches:
    """The touches after an action."""
    local: dict[str, Index] = {}
    for primitive in action["primitives"]:
        operands = primitive["parameters"]
        if primitive["op"] == "register_read":
            touches = touched(touches, operands[1]["value"], False, index(operands[2], local), where)
        elif primitive["op"] == "register_write":
            touches = touched(touches, operands[0]["value"], True, index(operands[1], local), where)
        if operands and operands[0]["type"] == "field":
            changed = ".".join(operands[0]["value"])
            value = index(operands[1], local) if primitive["op"] == "assign" else None
            touches = {
                register: replace(touch, cell=CHANGED) if changed in touch.cell.fields else touch
                for register, touch in touches.items()
            }
            local = {name: known for name, known in local.items() if changed not in known.fields}
            local.pop(changed, None)
            if value is not None and changed not in value.fields:
                local[changed] = value
    return touches


class Pipeline:
    """One pipeline of the compiled program, as a graph."""

    def __init__(self, pipeline: Json, actions: Mapping[int, Json]) -> None:
        self.start: str | None = pipeline["init_table"]
        self.nodes: dict[str, Json] = {
            node["name"]: node for kind in ("tables", "conditionals") for node in pipeline[kind]
        }
        self.actions = actions

    def steps(self, name: str) -> Iterator[tuple[Json | None, str | None]]:
        """Every way through a node: the action taken, and the node that follows."""
        node = self.nodes[name]
        if "true_next" in node:
            yield None, node["true_next"]
            yield None, node["false_next"]
            return
        following: dict[str, str | None] = node["next_tables"]
        for action_id, action_name in zip(node["action_ids"], node["actions"], strict=True):
            for label in {action_name, "__HIT__", "__MISS__"} & following.keys():
                yield self.actions[action_id], following[label]
        if "__MISS__" in following or node.get("default_entry") is None:
            yield None, following.get("__MISS__", node.get("base_default_next"))

    def prove(self) -> set[str]:
        """Follows every path. Returns the registers met; TouchError on a second touch."""
        met: set[str] = set()
        seen: set[tuple[str, frozenset[tuple[str, Touch]]]] = set()
        open_ends: list[tuple[str, Touches]] = [(self.start, {})] if self.start else []
        while open_ends:
            name, touches = open_ends.pop()
            key = (name, frozenset(touches.items()))
            if key in seen:
                continue
            seen.add(key)
            for action, following in self.steps(name):
                after = executed(touches, action, name) if action else touches
                met |= after.keys()
                if following is not None:
                    open_ends.append((following, after))
        return met


def prove(program: Json) -> set[str]:
    """Proves every pipeline of a program; returns the names of the registers met."""
    actions = {action["id"]: action for action in program["actions"]}
    return set().union(*(Pipeline(pipeline, actions).prove() for pipeline in program["pipelines"]))


def main() -> int:
    """Proves the programs named on the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Proves that no packet touches a register twice.")
    parser.add_argument("program", type=Path, nargs="+", help="BMv2 JSON")
    for path in parser.parse_args().program:
        try:
            met = prove(json.loads(path.read_text()))
        except TouchError as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
        print(f"{path}: {len(met)} registers, each touched at most once on every path")
    return 0


if __name__ == "__main__":
    sys.exit(main())
