"""Markdown as the tests of the docs see it: paragraphs, words, links and fenced blocks."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A fenced block."""


def words(text: str) -> int:
    """Words of Markdown: they have a letter; the target of a link is none."""
    return sum(bool(re.search(r"[^\W\d_]", word)) for word in re.sub(r"\]\([^)]*\)", "]", text).split())


def paragraphs(text: str) -> list[str]:
    """Paragraphs, items of lists and rows of tables, without code blocks."""
    lines = re.sub(r"^(\s*([-*]|\d+\.) |\|)", r"\n\1", FENCE.sub("", text), flags=re.MULTILINE)
    return [paragraph for paragraph in re.split(r"\n\s*\n", lines) if paragraph.strip()]


def blocks(text: str, language: str) -> list[str]:
    """Fenced blocks of a language."""
    return [body for name, body in FENCE.findall(text) if name == language]


@cache
def anchors(page: Path) -> set[str]:
    """What a link can name in a page: its headings, as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: Path) -> list[str]:
    """Links within the repository that name no file or folder, or no heading of a page."""
    dead: list[str] = []
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    return dead
