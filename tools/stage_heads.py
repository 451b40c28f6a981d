"""Checks that the head comment of every stage's file names exactly what the stage's controls read, write and drop.

A head has up to five lists: `reads`, `writes`, `reads, writes` (both), `drops` and `punts`; `keys` is free text. A list
consists of rows of names, separated by commas. A `;` or a new line begins another row, unless the previous line ends in
a comma. Text after a `:` or in parentheses explains a row and is not checked. A name denotes a parameter or a field,
and also every field below it. The name may omit the parameter, and `sluice`, the field of a target's
metadata that contains the stages' metadata. The row `what X and Y read` stands for each field that the controls of
files X and Y read (write, drop, punt) when this stage applies them. A name that begins with `the`, such as `the cells
of load_*`, is not checked: registers are not parameters.

tools/p4_effects.py derives the accesses of each control; a list must agree with all programs taken together. `reads`
may omit a field that the stage itself may have written before it reads the field. A field of type DropReason or
PuntReason is not listed under `writes`; its reasons are listed under `drops` and `punts`. A file needs a head if a main
file, or a file of PATHS, instantiates its control. The tool prints a line for each wrong list, and then exits with
status 1.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools import p4_sources
from tools.p4 import BUILDS, TOFINO_BUILDS, P4Error
from tools.p4_effects import REASONS, Access, Control, Effects, Program, preprocessed
from tools.p4_sources import ROOT

PATHS = ("front", "limits", "pinning", "content_path", "resource_path", "next_pass", "departure", "egress")
"""Names of files other than main.p4 whose controls apply stages."""
INCLUDED = re.compile(r"what ([\w, ]+) (?:reads?|writes?|drops?|punts?)")
REMARK = re.compile(r"\([^)]*\)")
VERBS = {"reads": "read", "writes": "written", "drops": "a reason to drop", "punts": "a reason to punt"}


class Names:
    """The names in a list of a head."""

    def __init__(self, text: str) -> None:
        """Parse the text of the list that tools/p4_sources.py extracts."""
        self.fields: set[str] = set()
        self.files: set[str] = set()
        """Files whose accesses the list includes by a row `what X and Y read`."""
        for explained in REMARK.sub("", text).split(";"):
            row = explained.partition(":")[0].strip()
            if included := INCLUDED.fullmatch(row):
                self.files |= set(re.split(r", | and ", included[1]))
            else:
                self.fields |= {each.strip() for each in row.split(",")}
        self.fields = {each for each in self.fields if each and not each.startswith("the ")}

    def missing(self, accesses: Iterable[Access]) -> list[str]:
        """Return the accessed paths for which the list has no name."""
        others = (path for path, via in accesses if via not in self.files)
        return sorted({short(path) for path in others if not self.fields & names(path)})

    def surplus(self, accesses: Iterable[Access]) -> list[str]:
        """Return the names in the list that correspond to no access."""
        accesses = set(accesses)
        known = {name for path, _ in accesses for name in names(path)}
        return sorted((self.fields - known) | (self.files - {via for _, via in accesses}))


def fields(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path without its parameter and without the target's field `sluice`; a path of only a parameter is
    returned unchanged."""
    if path[1:2] == ("sluice",) and len(path) > 2:
        return path[2:]
    return path[1:] or path


def short(path: tuple[str, ...]) -> str:
    """Return a path as text for messages, with at most two fields."""
    return ".".join(fields(path)[:2])


def names(path: tuple[str, ...]) -> set[str]:
    """Return all names by which a list may denote a path."""
    return {".".join(each[: length + 1]) for each in (path, fields(path)) for length in range(len(each))}


def applied(program: Program) -> set[str]:
    """Return the files of the controls that a main file or a file of PATHS instantiates."""
    paths = (each for each in program.controls.values() if Path(each.file).stem in ("main", *PATHS))
    named = {kind for each in paths for kind in each.instances.values()}
    return {each.file for name, each in program.controls.items() if name in named}


def derived(program: Program) -> dict[str, Effects]:
    """Return the effects of each file's controls, by the file's path relative to the repository's root.

    A control that another control of the same file instantiates counts as a part of that control. The order of the
    file's other controls is unknown; a field that one of them writes does not count as needed by another.
    """
    files: dict[str, list[Control]] = defaultdict(list)
    for control in program.controls.values():
        files[control.file].append(control)
    effects: dict[str, Effects] = {}
    for file, controls in files.items():
        inner = {kind for each in controls for kind in each.instances.values()}
        outer = [listed(program, each) for each in controls if each.name not in inner]
        effects[file] = Effects()
        for each in outer:
            others = {fields(path) for other in outer if other is not each for path, _ in other.writes}
            each.needs.difference_update([access for access in each.needs if fields(access[0]) in others])
            effects[file].update(each)
    return effects


def listed(program: Program, control: Control) -> Effects:
    """Return a control's effects, without writes of reason fields and without the reason `none`."""
    effects = program.effects(control)
    writes = {each for each in effects.writes if program.type_of(control, each[0]) not in REASONS}
    reasons = {each for each in effects.reasons if each[0][1] != "none"}
    return Effects(set(effects.reads), set(effects.needs), writes, reasons)


def disagreements(parts: dict[str, str], effects: Effects) -> Iterator[str]:
    """Yield a message for each list of a head that disagrees with the effects."""
    reasons = {enum: {each for each in effects.reasons if each[0][0] == enum} for enum in REASONS}
    both = parts.get("reads, writes", "")
    for title, needed, allowed in (
        ("reads", effects.needs, effects.reads),
        ("writes", effects.writes, effects.writes),
        ("drops", reasons["DropReason"], reasons["DropReason"]),
        ("punts", reasons["PuntReason"], reasons["PuntReason"]),
    ):
        text = f"{parts.get(title, '')};{both if title in ('reads', 'writes') else ''}"
        if missing := Names(text).missing(needed):
            yield f"`{title}` lacks {', '.join(missing)}"
        if surplus := Names(text).surplus(allowed):
            yield f"`{title}` names {', '.join(surplus)}: not {VERBS[title]}"


def broken(programs: Iterable[Program], root: Path = ROOT) -> tuple[int, list[str]]:
    """Return the number of source files with a head, and messages: one for each list that disagrees with the code, and
    one for each stage whose file has no head."""
    effects: dict[str, Effects] = defaultdict(Effects)
    stages: set[str] = set()
    for program in programs:
        stages |= applied(program)
        for file, each in derived(program).items():
            effects[file].update(each)
    number, problems = 0, list[str]()
    for file, each in sorted(effects.items()):
        head = p4_sources.stage(root / file)
        number += head is not None
        if head:
            problems += [f"{file}: {problem}" for problem in disagreements(head.parts, each)]
        elif p4_sources.has_lists(root / file) or (file in stages and any(vars(each).values())):
            problems.append(f"{file}: no head with the stage's name, a colon, and lists of what it reads and writes")
    return number, problems


def main() -> int:
    """Check the stages of all programs; return the exit status."""
    try:
        number, problems = broken(Program(preprocessed(build)) for build in (*BUILDS.values(), *TOFINO_BUILDS.values()))
    except P4Error as error:
        print(f"stage-heads: {error}", file=sys.stderr)
        return 1
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{number} stages: each head names what is read, written and dropped, and nothing else")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
