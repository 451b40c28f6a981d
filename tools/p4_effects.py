"""Derives the effects of each control from a P4 program's text: the fields of the control's parameters that the control
reads and writes, and the drop and punt reasons that it sets.

The C preprocessor resolves includes, conditions and macros as for p4c, but the target's own headers are replaced by
empty files. The effects of actions, tables (their keys and all their actions), functions, register actions and applied
controls are attributed to the control that calls them, under the names of that control's own parameters.

The derivation assumes that every statement is reachable. It finds neither the cells of a register that are accessed,
nor reasons that a control plane's entry sets, nor arguments that externs outside of OUTPUTS write. It refuses `for`,
which no source contains.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.p4 import ROOT, Build, P4Error

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[A-Za-z_]\w*|\d\w*|[=!<>]=|[^\s\w]')
MARKER = re.compile(r'# \d+ "([^"]+)"')
NAME = re.compile(r"[A-Za-z_]\w*")
HEADERS = ("core.p4", "v1model.p4", "tna.p4", "t2na.p4")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
OUTPUTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "read": (0, ()),
    "hash": (0, ()),
    "random": (0, ()),
    "execute_meter": (1, ()),
    "update_checksum": (2, ()),
    "update_checksum_with_payload": (2, ()),
    "mark_to_drop": (0, ("egress_spec",)),
}
"""For each extern method or function of v1model: the number (from 0) of the argument that it writes, and the path of
the written field in this argument; an empty path means the argument itself. TNA's externs return a value instead."""
REASONS = ("DropReason", "PuntReason")

Tokens = Sequence[str]
FieldPath = tuple[str, ...]
"""A parameter's name, followed by names of nested fields."""
Access = tuple[FieldPath, str]
"""A field path (or an enum and its member), and the file of the control that accesses it; "" for the control's own
file."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a control, action or function."""

    name: str
    direction: str
    """`in`, `out` or `inout`; empty for parameters that the control plane supplies to an action, and for externs."""
    type: str


@dataclass
class Effects:
    """The effects of a control, action or function. Paths begin with its own parameters or those of the enclosing
    control."""

    reads: set[Access] = field(default_factory=set)
    needs: set[Access] = field(default_factory=set)
    """The reads that no earlier write of the same control supplies, so that the values must come from outside."""
    writes: set[Access] = field(default_factory=set)
    """Paths that may be written. Setting a drop or punt reason counts as a write of the field that contains it."""
    reasons: set[Access] = field(default_factory=set)

    def update(self, other: "Effects") -> None:
        """Add the effects of another control to these effects."""
        self.reads |= other.reads
        self.needs |= other.needs
        self.writes |= other.writes
        self.reasons |= other.reasons


@dataclass
class Control:
    """A control with its declarations, or an action or function, which has no actions and tables of its own."""

    name: str
    file: str
    """Path of the source, relative to the repository's root."""
    parameters: list[Parameter]
    body: Tokens = ()
    actions: dict[str, "Control"] = field(default_factory=dict)
    """Actions and register actions, by name."""
    tables: dict[str, Tokens] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    """Types of the control's instances, by instance name."""


def preprocessed(build: Build) -> str:
    """Return a program's preprocessed text with line markers. Raises P4Error if the preprocessor is missing or
    fails."""
    with tempfile.TemporaryDirectory() as folder:
        for name in HEADERS:
            (Path(folder) / name).touch()
        flags = [each for each in build.arguments if each.startswith(("-I", "-D"))]
        command = ["cpp", "-undef", "-nostdinc", *flags, f"-I{folder}", build.main]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise P4Error("no cpp on PATH: the C preprocessor comes with build-essential") from None
    if done.returncode:
        raise P4Error(f"{' '.join(command)} says:\n{done.stderr}")
    return done.stdout


def end(tokens: Tokens, start: int) -> int:
    """Return the position of the bracket that closes the opening bracket at `start`."""
    opening, closing = tokens[start], CLOSING[tokens[start]]
    depth = 0
    for position in range(start, len(tokens)):
        depth += (tokens[position] == opening) - (tokens[position] == closing)
        if depth == 0:
            return position
    raise P4Error(f"no bracket closes {' '.join(tokens[start : start + 8])}")


def find(tokens: Tokens, token: str, start: int = 0) -> int:
    """Return the position of the first `token` outside of brackets; without one, the number of tokens."""
    while start < len(tokens) and tokens[start] != token:
        start = end(tokens, start) + 1 if tokens[start] in "([{" else start + 1
    return start


def split(tokens: Tokens, separator: str) -> Iterator[Tokens]:
    """Yield the runs of tokens between separators outside of brackets; empty runs are skipped."""
    start = 0
    while start < len(tokens):
        stop = find(tokens, separator, start)
        if stop > start:
            yield tokens[start:stop]
        start = stop + 1


def without_annotations(tokens: Tokens) -> list[str]:
    """Return the tokens without annotations (`@name` and its arguments)."""
    others: list[str] = []
    position = 0
    while position < len(tokens):
        if tokens[position] == "@":
            position += 2
            if position < len(tokens) and tokens[position] == "(":
                position = end(tokens, position) + 1
        else:
            others.append(tokens[position])
            position += 1
    return others


def parameters(tokens: Tokens) -> list[Parameter]:
    """Parse the tokens between a declaration's parentheses; return the parameters."""
    declared: list[Parameter] = []
    for each in split(tokens, ","):
        direction = each[0] if each[0] in ("in", "out", "inout") else ""
        declared.append(Parameter(each[-1], direction, each[1 if direction else 0]))
    return declared


def path_at(tokens: Tokens, start: int) -> FieldPath:
    """Return the name at `start` and the field names that follow it."""
    path = [tokens[start]]
    position = start + 1
    while position + 1 < len(tokens) and tokens[position] == "." and NAME.fullmatch(tokens[position + 1]):
        path.append(tokens[position + 1])
        position += 2
    return tuple(path)


class Program:
    """The controls, functions and structures of a program."""

    def __init__(self, text: str) -> None:
        """Parse a preprocessed program."""
        self.controls: dict[str, Control] = {}
        self.functions: dict[str, Control] = {}
        self.fields: dict[str, dict[str, str]] = {}
        """Field types by structure and field name."""
        self.known: dict[int, Effects] = {}
        file = ""
        tokens: list[str] = []
        files: list[str] = []
        for line in text.splitlines():
            if marker := MARKER.match(line):
                file = os.path.normpath(marker[1])
            elif not line.startswith("#"):
                new = TOKEN.findall(line)
                tokens += new
                files += [file] * len(new)
        position = 0
        while position < len(tokens):
            position = self.declaration(tokens, position, files[position])

    def declaration(self, tokens: Tokens, position: int, file: str) -> int:
        """Parse the declaration at a position; return the position after the declaration."""
        if tokens[position] == "@":
            return end(tokens, position + 2) + 1 if tokens[position + 2] == "(" else position + 2
        if tokens[position] in ("parser", "enum", "extern", "header_union"):
            return end(tokens, find(tokens, "{", position)) + 1
        if tokens[position] in ("struct", "header"):
            stop = end(tokens, position + 2)
            fields = (without_annotations(each) for each in split(tokens[position + 3 : stop], ";"))
            self.fields[tokens[position + 1]] = {each[-1]: each[0] for each in fields}
            return stop + 1
        opening = next(n for n in range(position, len(tokens)) if tokens[n] in "(;=")
        if tokens[position] in ("typedef", "const") or tokens[opening] != "(":
            return find(tokens, ";", position) + 1
        closing = end(tokens, opening)
        if tokens[closing + 1] != "{":
            return find(tokens, ";", position) + 1
        stop = end(tokens, closing + 1)
        declared = Control(tokens[opening - 1], file, parameters(tokens[opening + 1 : closing]))
        body = tokens[closing + 2 : stop]
        if tokens[position] == "control":
            self.controls[declared.name] = declared
            members(declared, body)
        else:
            self.functions[declared.name] = declared
            declared.body = body
        return stop + 1

    def effects(self, control: Control, around: Control | None = None) -> Effects:
        """Return the effects of a control, of a function, or of an action that the control `around` declares."""
        if id(control) not in self.known:
            walk = Walk(self, control, around or control)
            walk.block(control.body)
            self.known[id(control)] = walk.effects
        return self.known[id(control)]

    def type_of(self, control: Control, path: FieldPath) -> str:
        """Return the type of a field path that begins with a control's parameter; "" if the program declares no such
        field."""
        kind = next((each.type for each in control.parameters if each.name == path[0]), "")
        for name in path[1:]:
            kind = self.fields.get(kind, {}).get(name, "")
        return kind


def members(control: Control, tokens: Tokens) -> None:
    """Parse the declarations inside a control."""
    tokens = without_annotations(tokens)
    position = 0
    while position < len(tokens):
        if tokens[position] == "action":
            closing = end(tokens, position + 2)
            stop = end(tokens, closing + 1)
            action = Control(tokens[position + 1], control.file, parameters(tokens[position + 3 : closing]))
            action.body = tokens[closing + 2 : stop]
            control.actions[action.name] = action
        elif tokens[position] == "table":
            stop = end(tokens, position + 2)
            control.tables[tokens[position + 1]] = tokens[position + 3 : stop]
        elif tokens[position] == "apply":
            stop = end(tokens, position + 1)
            control.body = tokens[position + 2 : stop]
        else:
            stop = find(tokens, ";", position)
            declare(control, tokens[position:stop])
        position = stop + 1


def declare(control: Control, tokens: Tokens) -> None:
    """Parse an instance, a register action or a variable; nothing is recorded for a variable."""
    assigned = find(tokens, "=")
    if "(" in tokens[:assigned]:
        name = tokens[assigned - 1]
        control.instances[name] = tokens[0]
        if assigned + 1 < len(tokens) and tokens[assigned + 1] == "{":
            opening = find(tokens, "(", assigned + 2)
            closing = end(tokens, opening)
            action = Control(name, control.file, parameters(tokens[opening + 1 : closing]))
            action.body = tokens[closing + 2 : end(tokens, closing + 1)]
            control.actions[name] = action


class Walk:
    """A walk through the statements of a control, an action or a function. The walk collects their effects."""

    def __init__(self, program: Program, control: Control, around: Control) -> None:
        """Prepare the walk. `around` declares the names in scope: it is the control itself or, for an action, the
        control that contains the action."""
        self.program, self.around = program, around
        self.names = {each.name for each in (*around.parameters, *control.parameters)}
        self.effects = Effects()
        self.written: set[FieldPath] = {(each.name,) for each in control.parameters if each.direction == "out"}
        """Paths that an earlier statement may have written, and the control's `out` parameters. A read of these paths
        needs no value from outside."""

    def read(self, path: FieldPath, via: str = "") -> None:
        """Record that a path is read."""
        if path[0] in self.names:
            self.effects.reads.add((path, via))
            if not any(path[:length] in self.written for length in range(1, len(path) + 1)):
                self.effects.needs.add((path, via))

    def write(self, path: FieldPath, via: str = "") -> None:
        """Record that a path is written."""
        if path[0] in self.names:
            self.effects.writes.add((path, via))
            self.written.add(path)

    def block(self, tokens: Tokens) -> None:
        """Walk through the statements between two braces."""
        position = 0
        while position < len(tokens):
            position = self.statement(tokens, position)

    def statement(self, tokens: Tokens, position: int) -> int:
        """Walk through the statement at a position; return the position after the statement."""
        first = tokens[position]
        if first == "for":
            raise P4Error(f"{self.around.file}: tools/p4_effects.py knows no `{first}`")
        if first == "{":
            stop = end(tokens, position)
            self.block(tokens[position + 1 : stop])
            return stop + 1
        if first == "@":
            stop = end(tokens, position + 2) + 1 if tokens[position + 2] == "(" else position + 2
            return self.statement(tokens, stop)
        if first == "if":
            closing = end(tokens, position + 1)
            self.expression(tokens[position + 2 : closing])
            before = set(self.written)
            stop = self.statement(tokens, closing + 1)
            if stop < len(tokens) and tokens[stop] == "else":
                after, self.written = self.written, before
                stop = self.statement(tokens, stop + 1)
                self.written |= after
            return stop
        if first == "switch":
            closing = end(tokens, position + 1)
            self.expression(tokens[position + 2 : closing])
            stop = end(tokens, closing + 1)
            self.cases(tokens[closing + 2 : stop])
            return stop + 1
        stop = find(tokens, ";", position)
        self.simple(tokens[position:stop])
        return stop + 1

    def cases(self, tokens: Tokens) -> None:
        """Walk through the blocks of a `switch` statement, of which at most one is executed."""
        before, after = set(self.written), set(self.written)
        position = find(tokens, "{")
        while position < len(tokens):
            self.written = set(before)
            position = self.statement(tokens, position)
            after |= self.written
            position = find(tokens, "{", position)
        self.written = after

    def simple(self, tokens: Tokens) -> None:
        """Walk through an assignment, a call, a declaration or a `return`."""
        assigned = find(tokens, "=")
        self.expression(tokens[assigned + 1 :])
        if assigned == len(tokens):
            self.expression(tokens)
        elif target := self.target_of(tokens[:assigned]):
            self.write(target)

    def target_of(self, tokens: Tokens) -> FieldPath | None:
        """Return the path that the tokens name, with or without a bit slice; None for any other expression."""
        if not tokens or not NAME.fullmatch(tokens[0]):
            return None
        path = path_at(tokens, 0)
        rest = tokens[2 * len(path) - 1 :]
        return path if path[0] in self.names and (not rest or rest[0] == "[") else None

    def expression(self, tokens: Tokens) -> None:
        """Record what an expression reads, what it calls, and the reasons that it yields, except reasons in
        comparisons."""
        position = 0
        while position < len(tokens):
            if not NAME.fullmatch(tokens[position]) or (position and tokens[position - 1] == "."):
                position += 1
                continue
            path = path_at(tokens, position)
            stop = position + 2 * len(path) - 1
            if stop < len(tokens) and tokens[stop] == "(":
                closing = end(tokens, stop)
                self.call(path, list(split(tokens[stop + 1 : closing], ",")))
                stop = closing + 1
            elif path[0] not in REASONS:
                self.read(path)
            elif not {"==", "!="} & {*tokens[max(position - 1, 0) : position], *tokens[stop : stop + 1]}:
                self.effects.reasons.add((path, ""))
            position = stop

    def call(self, path: FieldPath, arguments: list[Tokens]) -> None:
        """Record the effects of a call of a control, a table, an action, a function, a header's method or an extern."""
        *owner, name = path
        if owner and name == "apply" and owner[0] in self.around.tables:
            self.table(self.around.tables[owner[0]])
        elif owner and name == "apply" and (control := self.applied(owner[0])):
            via = "" if control.file == self.around.file else Path(control.file).stem
            self.invoke(control, self.program.effects(control), arguments, via)
        elif owner and name == "execute" and (action := self.around.actions.get(owner[0])):
            self.arguments(name, arguments)
            self.invoke(action, self.program.effects(action, self.around), [])
        elif not owner and (action := self.around.actions.get(name)):
            self.invoke(action, self.program.effects(action, self.around), arguments)
        elif not owner and (function := self.program.functions.get(name)):
            self.invoke(function, self.program.effects(function), arguments)
        elif name == "isValid":
            self.read(tuple(owner))
        elif name in ("setValid", "setInvalid"):
            self.write(tuple(owner))
        else:
            self.arguments(name, arguments)

    def applied(self, instance: str) -> Control | None:
        """Return the control that an instance instantiates; None for an extern."""
        return self.program.controls.get(self.around.instances.get(instance, ""))

    def arguments(self, name: str, arguments: list[Tokens]) -> None:
        """Record which arguments an extern's method or function reads and writes."""
        output, below = OUTPUTS.get(name, (None, ()))
        for number, argument in enumerate(arguments):
            if number != output:
                self.expression(argument)
            elif target := self.target_of(argument):
                self.write((*target, *below))

    def table(self, tokens: Tokens) -> None:
        """Record the reads of a table's key, and the effects of each of the table's actions."""
        properties: dict[str, Tokens] = {}
        position = 0
        while position < len(tokens):
            assigned = find(tokens, "=", position)
            name = tokens[assigned - 1]
            braces = tokens[assigned + 1] == "{"
            stop = end(tokens, assigned + 1) if braces else find(tokens, ";", assigned)
            properties[name] = tokens[assigned + 1 + braces : stop]
            position = stop + 1
        for each in split(properties.get("key", ()), ";"):
            self.expression(each[: find(each, ":")])
        before, after = set(self.written), set(self.written)
        for (name,) in split(properties.get("actions", ()), ";"):
            self.written = set(before)
            if action := self.around.actions.get(name):
                self.invoke(action, self.program.effects(action, self.around), [])
            after |= self.written
        self.written = after
        for each in (*split(properties.get("entries", ()), ";"), properties.get("default_action", ())):
            if "(" in each:
                called = each[find(each, ":") + 1 :] or each
                self.expression(called[called.index("(") :])

    def invoke(self, called: Control, effects: Effects, arguments: list[Tokens], via: str = "") -> None:
        """Record the effects of the called control or action, with its parameters replaced by the caller's
        arguments."""
        targets: dict[str, FieldPath | None] = {each.name: None for each in called.parameters}
        for parameter, argument in zip(called.parameters, arguments, strict=False):
            targets[parameter.name] = self.target_of(argument)
            if not targets[parameter.name] and parameter.direction != "out":
                self.expression(argument)

        def named(accesses: set[Access]) -> Iterator[Access]:
            for path, inner in sorted(accesses):
                if target := targets.get(path[0], path[:1]):
                    yield (*target, *path[1:]), via or inner

        for path, file in named(effects.needs):
            self.read(path, file)
        self.effects.reads.update((path, file) for path, file in named(effects.reads) if path[0] in self.names)
        for path, file in named(effects.writes):
            self.write(path, file)
        self.effects.reasons.update((reason, via or inner) for reason, inner in effects.reasons)
