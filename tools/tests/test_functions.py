"""Checks that no Python function has more than 60 lines. (clippy checks Rust functions, with reasons for
exceptions.)"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
MOST_LINES = 60


def long_functions(source: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines of each function that exceeds the limit."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MOST_LINES:
                yield node.name, lines


def test_no_function_is_longer() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py"], cwd=REPOSITORY, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    paths = [path for name in listed if name and (path := REPOSITORY / name).exists()]
    assert len(paths) > 100, "this is no checkout"
    lengths = {f"{path}: {name}": lines for path in paths for name, lines in long_functions(path.read_text())}
    assert not lengths, "split them"


def test_a_longer_one_is_found() -> None:
    longest = "def f():\n" + "    x = 1\n" * (MOST_LINES - 1)
    assert list(long_functions(longest)) == []
    assert list(long_functions("async " + longest + "    x = 2\n")) == [("f", MOST_LINES + 1)]
