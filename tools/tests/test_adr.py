"""Checks that each architecture decision (docs/adr) is short and complete, and that the index lists each one once."""

import re
from pathlib import Path

import pytest

from tools.gen_adr import AREAS, FOLDER, decisions
from tools.gen_adr import parts as parts_of

DECISIONS = decisions()
PARTS = ["Area", "Status", "Context", "Decision", "Consequence"]
REPLACED = ["Area", "Status", "Decision"]
"""Labels of the paragraphs in a decision that another one has replaced entirely; it needs no context or consequence."""
WORDS = 150
PARAGRAPH_WORDS = 100

each = pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)


def words(text: str) -> int:
    """Return the number of words in Markdown text, without the targets of links."""
    return len(re.sub(r"\]\([^)]*\)", "]", text).split())


def parts(path: Path) -> dict[str, str]:
    """Return a decision's labelled paragraphs by label."""
    return parts_of(path.read_text())


def title(path: Path) -> str:
    """Return the title, whose number must be that in the file's name."""
    number = path.name[:4]
    heading = re.match(rf"# {number}: (.+)\n", path.read_text())
    assert heading, f'{path.name} does not begin with "# {number}: " and a title'
    return heading[1]


def test_every_number_is_taken_once() -> None:
    """Every decision must have a number of its own. Gaps are allowed, because a branch may reserve a number and then
    not use it."""
    numbers = [path.name[:4] for path in DECISIONS]
    assert len(set(numbers)) == len(numbers)


@each
def test_a_decision_has_a_title_and_its_parts_in_order(path: Path) -> None:
    sections = parts(path)
    replaced = sections.get("Status", "").startswith("superseded by")
    assert title(path)
    assert list(sections) == (REPLACED if replaced else PARTS)
    text = path.read_text()
    assert len(text.strip().split("\n\n")) == len(sections) + 1, "something stands outside of the parts"


@each
def test_a_status_says_whether_the_decision_holds(path: Path) -> None:
    status = parts(path)["Status"]
    assert re.match(r"(accepted|obsolete)\b|superseded by \[\d{4}\]\(", status), status
    for clause in re.findall(r"superseded (?:on \w+ )?by (.*?)(?:;|$)", status):
        assert re.match(r"\[\d{4}\]\(\d{4}-", clause), f"names no successor: {status}"
    for number, target in re.findall(r"\[(\d{4})\]\(([^)]+)\)", status):
        assert target.startswith(f"{number}-"), f"{number} leads to {target}"
        assert (FOLDER / target).is_file(), f"no decision {target}"
        assert number != path.name[:4], "it names itself"


@each
def test_a_decision_is_short(path: Path) -> None:
    text = path.read_text()
    assert words(text) <= WORDS
    assert max(words(paragraph) for paragraph in text.split("\n\n")) <= PARAGRAPH_WORDS


@each
def test_a_decision_stands_in_an_area_of_the_index(path: Path) -> None:
    assert parts(path)["Area"] in AREAS


def test_the_index_names_every_decision_once() -> None:
    index = (FOLDER / "README.md").read_text()
    assert sorted(re.findall(r"^\| \[\d{4}\]\((.+?)\) \|", index, re.MULTILINE)) == [path.name for path in DECISIONS]
