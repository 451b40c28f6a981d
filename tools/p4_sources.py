"""What p4src/common says in numbers: sizes, constants, enums and ids."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
P4SRC = ROOT / "p4src"

CONDITION = re.compile(r"#(if|elif) defined\((\w+)\)$")
CONSTANT = re.compile(r"^const (?:bit<\d+>|int) (\w+)\s*= ([\w <]+);", re.MULTILINE)
ID = re.compile(r"^#define (\w+) +(0x[0-9a-f]+)(?: +// (.+))?$", re.MULTILINE)
ENUM = re.compile(r"enum bit<\d+> (\w+) \{(.*?)\n\}", re.DOTALL)
MEMBER = re.compile(r"(\w+)\s*=\s*(\d+),?\s*(?://\s*(.*))?")


@dataclass(frozen=True)
class Number:
    """A name with its number, and what the source says of it."""

    name: str
    value: int
    text: str = ""


def lines_for(path: Path, *defined: str) -> Iterator[str]:
    """The lines of a source that a preprocessor leaves with some names defined, of `#if defined(NAME)` only."""
    taken, keeps = False, True
    inside = False
    for line in path.read_text().splitlines():
        if found := CONDITION.match(line):
            taken = taken if found[1] == "elif" else False
            keeps, inside = not taken and found[2] in defined, True
            taken = taken or keeps
        elif inside and line == "#else":
            keeps = not taken
        elif inside and line == "#endif":
            keeps, inside = True, False
        elif keeps:
            yield line


def constants(path: Path, *defined: str) -> dict[str, str]:
    """Constants as Python is to have them: a literal as it is written, a shift as its value. KeyError for others."""
    found: dict[str, str] = {}
    for name, expression in CONSTANT.findall("\n".join(lines_for(path, *defined))):
        left, _, right = expression.partition(" << ")
        found[name] = str(int(left, 0) << int(found[right], 0)) if right else left
    return found


def sizes(*defined: str) -> dict[str, int]:
    """The sizes of common/sizes.p4 by name, for a build: LARGE, TOFINO or none."""
    return {name: int(value, 0) for name, value in constants(P4SRC / "common/sizes.p4", *defined).items()}


def ids() -> dict[str, Number]:
    """The ids of common/ids.p4, by name."""
    found = ID.findall((P4SRC / "common/ids.p4").read_text())
    return {name: Number(name, int(value, 0), text) for name, value, text in found}


def enums(path: Path) -> dict[str, list[Number]]:
    """The members of each serializable enum of a source."""
    return {
        name: [Number(member, int(value), text) for member, value, text in MEMBER.findall(body)]
        for name, body in ENUM.findall(path.read_text())
    }
