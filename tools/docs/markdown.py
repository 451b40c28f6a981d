"""Parses Markdown for the tests of the documentation: paragraphs, words, links and fenced blocks."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""Matches a fenced block; the groups are its language and its content."""


def words(text: str) -> int:
    """Return the number of words in Markdown. A word contains a letter; the targets of links are not counted."""
    return sum(bool(re.search(r"[^\W\d_]", word)) for word in re.sub(r"\]\([^)]*\)", "]", text).split())


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs, items of lists and rows of tables, without code blocks."""
    lines = re.sub(r"^(\s*([-*]|\d+\.) |\|)", r"\n\1", FENCE.sub("", text), flags=re.MULTILINE)
    return [paragraph for paragraph in re.split(r"\n\s*\n", lines) if paragraph.strip()]


def blocks(text: str, language: str) -> list[str]:
    """Return the contents of the fenced blocks of a language."""
    return [body for name, body in FENCE.findall(text) if name == language]


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors in a page to which a link can point: those that GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> list[str]:
    """Return the links within the repository whose target file, folder or heading does not exist."""
    dead: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    return dead
