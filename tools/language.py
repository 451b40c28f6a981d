"""Counts private language in comments, docstrings, documents and names: `python -m tools.language`, in `make lint`.

`tools/language.toml` lists words that leave a reader without a subject, such as indefinite pronouns, and names that do
not describe a variable's content ("one", "part"). For each word and name it contains the number of uses in the tree.
The check fails if the tree has more uses. It also fails if the tree has fewer, until `--write` has stored the lower
number. So the numbers only fall, and at 0 a word is refused. The file's exceptions are uses that must stay; the check
does not count them.

- Words are counted in comments and docstrings of Python, Rust and P4, and in the text of documents (Markdown, without
  code). Results, decision records and the changelog are not counted.
- Names are counted where Python binds a local, a parameter or a field, and where Rust's or P4's code uses an identifier
  that is neither called nor preceded by a dot.

`--list WORD` prints the locations of a word or name. `--sample NUMBER --seed TEXT` prints random comments and
docstrings with the code around them, which readers can then judge; equal seeds give equal samples of equal sources.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from pygments.lexer import Lexer
from pygments.lexers.c_cpp import CLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.rust import RustLexer
from pygments.token import Comment, Name, String, Token

ROOT = Path(__file__).resolve().parent.parent
COUNTS = Path("tools/language.toml")

LEXERS: dict[str, type[Lexer]] = {".py": PythonLexer, ".rs": RustLexer, ".p4": CLexer}
SKIPPED = ("docs/results/", "docs/adr/", "CHANGELOG.md", "p4src/build/")
LINES_BEFORE, LINES_AFTER = 3, 6
"""Numbers of code lines that a sample shows before and after a comment or docstring."""
DIRECTIVE = re.compile(r"#\s*(?:noqa|type:|pyright:|pragma)|#!/")
"""Matches comments that are instructions to a tool; samples leave them out."""


@dataclass(frozen=True)
class Text:
    """A comment, a docstring or a paragraph of a document, with the number of its first line."""

    path: Path
    line: int
    text: str


@dataclass(frozen=True)
class Use:
    """One use of a counted word or name."""

    path: Path
    line: int
    term: str


class ExceptionsError(Exception):
    """An exception of tools/language.toml that has no reason, or that excepts nothing."""


def sources(root: Path) -> list[Path]:
    """Return the paths, relative to `root`, of the files below `root` that git tracks and this tool counts."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    paths = [Path(name) for name in listed if not name.startswith(SKIPPED)]
    return [path for path in paths if path.suffix in LEXERS or path.suffix == ".md"]


def is_comment(kind: Any, value: str) -> bool:
    """Return whether a token is a comment or a line of a Rust doc comment, which Pygments classifies as a docstring."""
    if kind in String.Doc:
        return value.startswith("//")
    return kind in Comment and kind not in Comment.Preproc and kind not in Comment.PreprocFile


def comments(path: Path, source: str) -> Iterator[Text]:
    """Yield the comments and docstrings of a program; comments on consecutive lines are one text."""
    block: list[str] = []
    first = last = 0
    line = 1
    for kind, value in LEXERS[path.suffix](ensurenl=False, stripnl=False).get_tokens(source):
        if is_comment(kind, value):
            if block and line > last + 1:
                yield Text(path, first, "\n".join(block))
                block = []
            first = first if block else line
            block.append(value.strip())
            last = line + value.rstrip("\n").count("\n")
        elif kind in String.Doc:
            yield Text(path, line, value)
        elif value.strip() and block:
            yield Text(path, first, "\n".join(block))
            block = []
        line += value.count("\n")
    if block:
        yield Text(path, first, "\n".join(block))


def paragraphs(path: Path, source: str) -> Iterator[Text]:
    """Yield the paragraphs of a Markdown document, without code."""
    for token in MarkdownIt("commonmark").enable("table").parse(source):
        if token.type == "inline" and token.map:
            words = [child.content for child in token.children or [] if child.type in ("text", "softbreak")]
            yield Text(path, token.map[0] + 1, " ".join(words))


def texts(path: Path, source: str) -> Iterator[Text]:
    """Yield all texts of a file that are written for a reader: paragraphs, or comments and docstrings."""
    yield from paragraphs(path, source) if path.suffix == ".md" else comments(path, source)


def python_names(path: Path, source: str) -> Iterator[Use]:
    """Yield the names that a Python source binds to values."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield Use(path, node.lineno, name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield Use(path, node.lineno, name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield Use(path, node.lineno, name)
            case _:
                pass


def identifiers(path: Path, source: str) -> Iterator[Use]:
    """Yield the identifiers of a Rust or P4 source that are neither called nor preceded by a dot."""
    line, before, pending = 1, "", list[Use]()
    for kind, value in LEXERS[path.suffix](ensurenl=False, stripnl=False).get_tokens(source):
        if kind not in Comment and value.strip():
            if value[0] not in "(!":
                yield from pending
            pending = [Use(path, line, value)] if kind in Name and before not in (".", "::") else []
            before = value.strip()
        elif kind is Token.Text and value.isspace():
            pass
        line += value.count("\n")
    yield from pending


def uses(root: Path, words: set[str], names: set[str]) -> Iterator[Use]:
    """Yield every use of the words in texts and of the names in code."""
    pattern = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, words)))})\b", re.IGNORECASE)
    for path in sources(root):
        source = (root / path).read_text()
        for text in texts(path, source):
            for match in pattern.finditer(text.text):
                yield Use(path, text.line + text.text.count("\n", 0, match.start()), match[0].lower())
        if path.suffix != ".md":
            bound = python_names(path, source) if path.suffix == ".py" else identifiers(path, source)
            yield from (Use(use.path, use.line, f"`{use.term}`") for use in bound if use.term in names)


def without_exceptions(every: list[Use], exceptions: list[dict[str, str]]) -> list[Use]:
    """Return the uses that are not excepted. An exception names a path, and a word or (in backquotes) a name.

    Raises ExceptionsError.
    """
    excepted = set[tuple[str, str]]()
    for each in exceptions:
        if each.keys() != {"path", "term", "reason"} or not each["reason"]:
            raise ExceptionsError(f"an exception has a path, a term and a reason: {each}")
        excepted.add((each["path"], each["term"]))
    unused = excepted - {(str(use.path), use.term) for use in every}
    if unused:
        raise ExceptionsError(f"these exceptions except nothing: {sorted(unused)}")
    return [use for use in every if (str(use.path), use.term) not in excepted]


def sample(root: Path, number: int, seed: str) -> Iterator[str]:
    """Yield random comments and docstrings, each with its location and the code around it."""
    programs = [path for path in sources(root) if path.suffix != ".md"]
    every = [text for path in programs for text in comments(path, (root / path).read_text())]
    every = [text for text in every if not DIRECTIVE.match(text.text)]
    generator = random.Random(seed)
    for place, text in enumerate(generator.sample(every, min(number, len(every))), 1):
        lines = (root / text.path).read_text().splitlines()
        first = text.line - 1
        end = first + text.text.strip("\n").count("\n") + 1
        shown = [f"  {line}" for line in lines[max(0, first - LINES_BEFORE) : first]]
        shown += [f"> {line}" for line in lines[first:end]]
        shown += [f"  {line}" for line in lines[end : end + LINES_AFTER]]
        yield f"--- {place}. {text.path}:{text.line}\n" + "\n".join(shown) + "\n\n"


def write(counts: Path, words: dict[str, int], names: dict[str, int]) -> None:
    """Write the numbers of uses to the file ``counts``, below its head comment; its exceptions stay."""
    head, _, counted = counts.read_text().partition("[words]")
    _, exceptions, listed = counted.partition("\n[[exceptions]]\n")
    rows = [f"{word} = {number}" for word, number in sorted(words.items())]
    named = [f"{name} = {number}" for name, number in sorted(names.items())]
    counts.write_text(head + "\n".join(["[words]", *rows, "", "[names]", *named]) + "\n" + exceptions + listed)


def main() -> int:
    """Compare, write, list or sample, as the command line demands; return 1 if a number of uses differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.language", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; default: this one")
    parser.add_argument("--write", action="store_true", help="write lower counts into tools/language.toml")
    parser.add_argument("--list", metavar="WORD", help="print the places of a word, or of a name in backquotes")
    parser.add_argument("--sample", type=int, metavar="NUMBER", help="print random comments and docstrings")
    parser.add_argument("--seed", default="", help="the seed of the sample, such as a commit's hash")
    arguments = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader like `head` that ends early ends this program, too
    if arguments.sample is not None:
        sys.stdout.writelines(sample(arguments.root, arguments.sample, arguments.seed))
        return 0
    allowed = tomllib.loads((arguments.root / COUNTS).read_text())
    words, names = allowed["words"], allowed["names"]
    try:
        every = without_exceptions(list(uses(arguments.root, set(words), set(names))), allowed.get("exceptions", []))
    except ExceptionsError as error:
        print(f"language: {error}", file=sys.stderr)
        return 1
    if arguments.list is not None:
        sys.stdout.writelines(f"{use.path}:{use.line}\n" for use in every if use.term == arguments.list)
        return 0
    counts = Counter(use.term for use in every)
    now = {term: counts[term] for term in [*words, *(f"`{name}`" for name in names)]}
    before = words | {f"`{name}`": number for name, number in names.items()}
    more = {term: number for term, number in now.items() if number > before[term]}
    fewer = {term: number for term, number in now.items() if number < before[term]}
    if arguments.write:
        least = {term: min(number, before[term]) for term, number in now.items()}
        write(arguments.root / COUNTS, {w: least[w] for w in words}, {n: least[f"`{n}`"] for n in names})
        fewer = {}
    for term, number in more.items():
        places = ", ".join(f"{use.path}:{use.line}" for use in every if use.term == term)
        print(
            f"language: {term}: {number} uses, {before[term]} allowed; write the field's term: {places}",
            file=sys.stderr,
        )
    for term, number in fewer.items():
        print(
            f"language: {term}: {number} uses are left of {before[term]}: python -m tools.language --write",
            file=sys.stderr,
        )
    if not more and not fewer:
        print(f"language: {len(now)} words and names, {sum(now.values())} uses, as in tools/language.toml")
    return 1 if more or fewer else 0


if __name__ == "__main__":
    sys.exit(main())
