"""Proves over the text of P4 sources that the apply block of every control reads as a diagram.

An apply block has at most 50 lines: those between its braces that hold more than a comment. A preprocessor's line
counts, and so does each line of a call that goes over several. Functions, actions and other controls that it calls do
not count.

Neither an apply block nor an action has a preprocessor's `#if` inside: where targets differ, a control, a function or a
file is chosen as a whole. Exit status 1, and the places, where a source breaks a rule. No compiler is needed.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.p4_sources import P4SRC, ROOT

MOST_LINES = 50
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
CONTROL = re.compile(r"\bcontrol\s+(\w+)")
BLOCK = re.compile(r"\bapply\s*\{|\baction\s+(\w+)\s*\([^)]*\)\s*\{")
"""A RegisterAction's `apply` has parameters: it is none."""
CONDITION = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif|else|endif)\b")


@dataclass(frozen=True)
class Block:
    """The apply block of a control, or an action."""

    control: str
    """Name of the control that it belongs to; empty outside of controls."""
    action: str
    """Name of the action; empty for an apply block."""
    line: int
    """Where it begins."""
    body: str
    """What is between its braces, with comments taken out."""

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"action {self.action} of {self.control}" if self.action else f"apply block of {self.control}"

    @property
    def length(self) -> int:
        """Lines that hold more than a comment."""
        return sum(bool(line.strip()) for line in self.body.splitlines())

    @property
    def conditions(self) -> list[int]:
        """The source's lines with a preprocessor's condition inside."""
        lines = enumerate(self.body.splitlines(), self.line)
        return [number for number, line in lines if CONDITION.match(line)]


def without_comments(text: str) -> str:
    """The text with as many lines, but no comments and no strings."""
    return COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def end_of(text: str, start: int) -> int:
    """Where the block ends whose opening brace is in front of `start`: its closing brace, or the text's end."""
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return start + brace.start()
    return len(text)


def blocks(text: str) -> Iterator[Block]:
    """The apply blocks and actions of a source, in its order."""
    text = without_comments(text)
    controls = [(match.start(), match[1]) for match in CONTROL.finditer(text)]
    for match in BLOCK.finditer(text):
        control = next((name for start, name in reversed(controls) if start < match.start()), "")
        # The line of the opening brace is the body's first: what follows the brace there belongs to the body.
        line = text.count("\n", 0, match.end()) + 1
        yield Block(control, match[1] or "", line, text[match.end() : end_of(text, match.end())])


def broken(path: Path) -> Iterator[str]:
    """A line for every rule that a source breaks: where, and what to do."""
    place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for block in blocks(path.read_text()):
        if not block.action and block.length > MOST_LINES:
            yield (
                f"{place}({block.line}): the {block.name} has {block.length} lines, at most {MOST_LINES}: "
                "move what is no guard into controls or actions"
            )
        for line in block.conditions[:1]:
            yield (
                f"{place}({line}): the {block.name} has a preprocessor's condition inside: "
                "choose a whole control, function or file by it"
            )


def main() -> int:
    """Checks the files and folders named on the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Proves that every apply block reads as a diagram.")
    parser.add_argument("source", type=Path, nargs="*", default=[P4SRC], help="P4 sources or folders; default: p4src")
    named: list[Path] = parser.parse_args().source
    paths = [path for each in named for path in ([each] if each.is_file() else sorted(each.rglob("*.p4")))]
    problems = [problem for path in paths for problem in broken(path)]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print(f"{len(paths)} P4 sources: no apply block has more than {MOST_LINES} lines, none a condition inside")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
