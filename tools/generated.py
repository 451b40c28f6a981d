"""Writes generated files that are kept in git; with `--check`, compares them instead of writing."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def run(path: Path, generate: Callable[[], str]) -> int:
    """Write a generated file or, with `--check`, compare it with the generated text; return the exit status."""
    name = path.relative_to(ROOT)
    parser = argparse.ArgumentParser(description=f"Generates {name}.")
    parser.add_argument("--check", action="store_true", help="compare with what is there; write nothing")
    check = parser.parse_args().check
    text = generate()
    if not check:
        path.write_text(text)
    elif not path.exists() or path.read_text() != text:
        print(f"{name} is not what its sources say: run `make p4`", file=sys.stderr)
        return 1
    return 0
