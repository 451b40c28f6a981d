"""Proves, in compiled BMv2 JSON, that no packet touches a register twice in one pass of a pipeline.

A touch is the access that a switch ASIC's stateful unit can make once per packet: a read, a write, or a read followed
by a write of the same cell. The control flow of a pipeline is a directed acyclic graph of conditionals and tables. The
proof follows each register separately along every path of this graph, and through the primitives of every action, in
order. (If several paths reach a node after the same touch, only one of them is followed further.) If a register is
touched twice, the tool prints the path and exits with status 1.

Each pass of a resubmitted packet is checked separately.
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
    """A register is touched twice on a path."""


@dataclass(frozen=True)
class Index:
    """A register cell's index: its expression as text, and the fields in the expression."""

    text: str
    fields: frozenset[str]


CHANGED = Index("a cell whose index has changed since", frozenset())


@dataclass(frozen=True)
class Touch:
    """The accesses to a register on a path so far (a read, a write or both), and the cell that they access."""

    reads: int
    writes: int
    cell: Index


def index(operand: Any, local: Mapping[str, Index]) -> Index:
    """Return an operand as an index. A field that this action has assigned is replaced by the assigned expression."""
    if isinstance(operand, dict) and operand.get("type") == "field":
        name = ".".join(operand["value"])
        return local.get(name, Index(name, frozenset([name])))
    if isinstance(operand, dict):
        parts = {key: index(value, local) for key, value in sorted(operand.items())}
        text = " ".join(f"{key}:{operand_index.text}" for key, operand_index in parts.items())
        return Index(f"({text})", frozenset().union(*(operand_index.fields for operand_index in parts.values())))
    return Index(str(operand), frozenset())


def touched(before: Touch | None, register: str, write: bool, cell: Index, where: str) -> Touch:
    """Return the touch after a further access. Raises TouchError if the access is a second touch."""
    if before is None:
        return Touch(int(not write), int(write), cell)
    if write and before.writes == 0 and before.cell == cell:
        return replace(before, writes=1)
    raise TouchError(
        f"{register}: a {'write' if write else 'read'} of {cell.text} in {where}, after {before.reads} reads and "
        f"{before.writes} writes of {before.cell.text} on the same path"
    )


def access(primitive: Json) -> tuple[str, bool, Any] | None:
    """Return the register that a primitive accesses, whether it writes, and the index operand; None if it accesses
    none."""
    operands = primitive["parameters"]
    if primitive["op"] == "register_read":
        return operands[1]["value"], False, operands[2]
    if primitive["op"] == "register_write":
        return operands[0]["value"], True, operands[1]
    return None


def assigned(primitive: Json) -> str | None:
    """Return the field that a primitive changes; None if it changes none."""
    operands = primitive["parameters"]
    return ".".join(operands[0]["value"]) if operands and operands[0]["type"] == "field" else None


class Action:
    """An action's primitives, the registers that they access, and the fields that they change."""

    def __init__(self, action: Json) -> None:
        self.primitives: list[Json] = action["primitives"]
        self.registers = {accessed[0] for primitive in self.primitives if (accessed := access(primitive))}
        self.changed = {field for primitive in self.primitives if (field := assigned(primitive)) is not None}


def executed(touch: Touch | None, register: str, action: Action, where: str) -> Touch | None:
    """Return the touch of a register after an action, given the touch before the action (None: no touch).

    If the action changes a field of the touched cell's index, the cell becomes CHANGED, so that a later write to it
    counts as a second touch. Raises TouchError if the action contains a second touch.
    """
    if register not in action.registers:
        return replace(touch, cell=CHANGED) if touch and touch.cell.fields & action.changed else touch
    local: dict[str, Index] = {}
    for primitive in action.primitives:
        operands = primitive["parameters"]
        accessed = access(primitive)
        if accessed and accessed[0] == register:
            touch = touched(touch, register, accessed[1], index(accessed[2], local), where)
        changed = assigned(primitive)
        if changed is not None:
            value = index(operands[1], local) if primitive["op"] == "assign" else None
            if touch and changed in touch.cell.fields:
                touch = replace(touch, cell=CHANGED)
            local = {name: known for name, known in local.items() if changed not in known.fields}
            local.pop(changed, None)
            if value is not None and changed not in value.fields:
                local[changed] = value
    return touch


class Pipeline:
    """One pipeline of the compiled program, as a graph."""

    def __init__(self, pipeline: Json, actions: Mapping[int, Action]) -> None:
        self.start: str | None = pipeline["init_table"]
        self.nodes: dict[str, Json] = {
            node["name"]: node for kind in ("tables", "conditionals") for node in pipeline[kind]
        }
        self.actions = actions

    def steps(self, name: str) -> Iterator[tuple[Action | None, str | None]]:
        """Yield, for each possible result of a node, the action that is executed (None: no action) and the next node
        (None: the pipeline ends)."""
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

    def reachable(self) -> Iterator[Action]:
        """Yield every action that is on a path from the pipeline's start."""
        seen: set[str] = set()
        open_ends = [self.start] if self.start else []
        while open_ends:
            name = open_ends.pop()
            if name in seen:
                continue
            seen.add(name)
            for action, following in self.steps(name):
                if action:
                    yield action
                if following is not None:
                    open_ends.append(following)

    def registers(self) -> set[str]:
        """Return the registers that at least one path accesses."""
        return {register for action in self.reachable() for register in action.registers}

    def prove(self, register: str) -> None:
        """Follow a register along every path. Raises TouchError if a path touches it a second time."""
        seen: set[tuple[str, Touch | None]] = set()
        open_ends: list[tuple[str, Touch | None]] = [(self.start, None)] if self.start else []
        while open_ends:
            name, touch = open_ends.pop()
            if (name, touch) in seen:
                continue
            seen.add((name, touch))
            for action, following in self.steps(name):
                after = executed(touch, register, action, name) if action else touch
                if following is not None:
                    open_ends.append((following, after))


def prove(program: Json) -> set[str]:
    """Check every pipeline of a program; return the names of the registers that they access. Raises TouchError."""
    actions = {action["id"]: Action(action) for action in program["actions"]}
    met: set[str] = set()
    for description in program["pipelines"]:
        pipeline = Pipeline(description, actions)
        for register in sorted(pipeline.registers()):
            pipeline.prove(register)
            met.add(register)
    return met


def main() -> int:
    """Check the programs named on the command line; return the exit status."""
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
