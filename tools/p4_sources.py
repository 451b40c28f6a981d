"""Reads p4src: sizes, constants, enums and ids as numbers, and the lists in the head comment of each stage."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
P4SRC = ROOT / "p4src"

CONDITION = re.compile(r"#(if|elif) (!?)defined\((\w+)\)$")
CONSTANT = re.compile(r"^const (?:bit<\d+>|int) (\w+)\s*= ([\w <+]+);", re.MULTILINE)
ID = re.compile(r"^#define (\w+) +(0x[0-9a-f]+)(?: +// (.+))?$", re.MULTILINE)
ENUM = re.compile(r"enum bit<\d+> (\w+) \{(.*?)\n\}", re.DOTALL)
INCLUDE = re.compile(r'^#include ["<]((?:stages|externs)/\w+\.p4)[">]$', re.MULTILINE)
HEAD = re.compile(r"// (\w[\w ]*?): (.+)")
PART = re.compile(r"//   (reads, writes|reads|writes|keys|drops|punts) +(.+)")
MEMBER = re.compile(r"(\w+)\s*=\s*(\d+),?\s*(?://\s*(.*(?:\n\s*//.*)*))?")
NEXT_LINE = re.compile(r"\n\s*//\s*")


@dataclass(frozen=True)
class Number:
    """A name with its number, and the comment about it in the source."""

    name: str
    value: int
    text: str = ""


def lines_for(path: Path, *defined: str) -> Iterator[str]:
    """Yield the lines that a preprocessor keeps if exactly the macros `defined` are defined.

    Each condition has the form `#if [!]defined(NAME)`, also with `#elif` and `#else`; conditions must not be nested.
    """
    taken, keeps = False, True
    inside = False
    for line in path.read_text().splitlines():
        if match := CONDITION.match(line):
            taken = taken if match[1] == "elif" else False
            keeps, inside = not taken and (match[3] in defined) != bool(match[2]), True
            taken = taken or keeps
        elif inside and line == "#else":
            keeps = not taken
        elif inside and line == "#endif":
            keeps, inside = True, False
        elif keeps:
            yield line


def constants(path: Path, *defined: str) -> dict[str, str]:
    """Return constants as Python source: a literal as written, a shift by a constant or a sum of constants as its
    value. Raises KeyError for other expressions."""
    values: dict[str, str] = {}
    for name, expression in CONSTANT.findall("\n".join(lines_for(path, *defined))):
        left, _, shift = expression.partition(" << ")
        if shift:
            values[name] = str(int(left, 0) << int(values[shift], 0))
        elif " + " in expression:
            values[name] = str(sum(int(values[term], 0) for term in expression.split(" + ")))
        else:
            values[name] = expression.upper().replace("X", "x")
    return values


def sizes(*defined: str) -> dict[str, int]:
    """Return the sizes in common/sizes.p4 by name; `defined` lists the build's macros, such as LARGE or TOFINO."""
    return {name: int(value, 0) for name, value in constants(P4SRC / "common/sizes.p4", *defined).items()}


def ids() -> dict[str, Number]:
    """Return the ids of common/ids.p4 by name."""
    matches = ID.findall((P4SRC / "common/ids.p4").read_text())
    return {name: Number(name, int(value, 0), text) for name, value, text in matches}


def enums(path: Path) -> dict[str, list[Number]]:
    """Return the members of each serializable enum of a source, by the enum's name."""
    return {
        name: [Number(member, int(value), NEXT_LINE.sub(" ", text)) for member, value, text in MEMBER.findall(body)]
        for name, body in ENUM.findall(path.read_text())
    }


@dataclass(frozen=True)
class Stage:
    """A stage as described in the head of its file: the purpose, and the lists, such as `reads` and `writes`."""

    name: str
    text: str
    parts: dict[str, str]


def stage(path: Path) -> Stage | None:
    """Return the stage that the head of a file describes; None if the head contains no lists."""
    lines = path.read_text().partition("\n#")[0].splitlines()
    head = HEAD.match(" ".join(line.removeprefix("// ") if number else line for number, line in enumerate(lines)))
    parts: dict[str, str] = {}
    last = ""
    for line in lines:
        if match := PART.match(line):
            last = match[1]
            parts[last] = match[2]
        elif last and line.startswith("//          "):
            parts[last] += f"{' ' if parts[last].endswith(',') else '; '}{line[3:].strip()}"
        else:
            last = ""
    return Stage(path.stem, re.split(r"(?<=[.?])(?: |$)|//", head[2])[0], parts) if head and parts else None


def has_lists(path: Path) -> bool:
    """Return whether a file begins with a comment that contains a list."""
    return any(PART.match(line) for line in path.read_text().partition("\n#")[0].splitlines())


def stages() -> list[Stage]:
    """Return v1model's intake, the stages in the order of stages.p4, and then further stages that only v1model has."""
    listed = INCLUDE.findall((P4SRC / "stages.p4").read_text())
    own = P4SRC / "v1model"
    paths = [own / "intake.p4", *(P4SRC / name if name.startswith("stages/") else own / name for name in listed)]
    heads = map(stage, [*paths, *(own / f"{name}.p4" for name in ("candidates", "moves", "verdict"))])
    return [head for head in heads if head]
