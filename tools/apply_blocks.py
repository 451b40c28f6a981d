"""Checks, in the text of P4 sources, that the apply block of every control reads as a diagram.

An apply block has at most 50 lines. All lines between its braces that contain more than a comment are counted, also
preprocessor lines, and every line of a call that extends over several lines. The bodies of functions, actions and
controls that the block calls are not counted.

Neither an apply block nor an action contains a preprocessor condition (`#if`): where targets differ, the source selects
a complete control, function or file. If a source breaks a rule, the tool prints the locations and exits with status 1.
No compiler is needed.
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
"""The beginning of a control's apply block or of an action. A RegisterAction's `apply` has parameters and so does not
match."""
CONDITION = re.compile(r"\s*#\s*(?:if|ifdef|ifndef|elif|else|endif)\b")


@dataclass(frozen=True)
class Block:
    """The apply block of a control, or an action."""

    control: str
    """Name of the control that contains the block or action; empty outside of controls."""
    action: str
    """Name of the action; empty for an apply block."""
    line: int
    """The number of the source line with the opening brace."""
    body: str
    """The text between the braces, without comments."""

    @property
    def name(self) -> str:
        """The block's name in messages."""
        return f"action {self.action} of {self.control}" if self.action else f"apply block of {self.control}"

    @property
    def length(self) -> int:
        """The number of lines that contain more than a comment."""
        return sum(bool(line.strip()) for line in self.body.splitlines())

    @property
    def conditions(self) -> list[int]:
        """The numbers of the source lines inside the block that contain a preprocessor condition."""
        lines = enumerate(self.body.splitlines(), self.line)
        return [number for number, line in lines if CONDITION.match(line)]


def without_comments(text: str) -> str:
    """Return the text without comments and strings, but with the same number of lines."""
    return COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def end_of(text: str, start: int) -> int:
    """Return the position of a block's closing brace, or the text's end. `start` is directly behind the opening
    brace."""
    depth = 1
    for brace in re.finditer(r"[{}]", text[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return start + brace.start()
    return len(text)


def blocks(text: str) -> Iterator[Block]:
    """Yield the apply blocks and actions of a source, in order."""
    text = without_comments(text)
    controls = [(match.start(), match[1]) for match in CONTROL.finditer(text)]
    for match in BLOCK.finditer(text):
        control = next((name for start, name in reversed(controls) if start < match.start()), "")
        # The body's first line is that of the opening brace, since code may follow the brace on the same line.
        line = text.count("\n", 0, match.end()) + 1
        yield Block(control, match[1] or "", line, text[match.end() : end_of(text, match.end())])


def broken(path: Path) -> Iterator[str]:
    """Yield a message for every rule that a source breaks, with the location and the remedy."""
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
    """Check the files and folders named on the command line; return the exit status."""
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
