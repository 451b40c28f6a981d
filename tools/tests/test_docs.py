"""Checks that the documentation is short, and that the tests, links, commands and configurations in it exist and are
valid."""

import re
from pathlib import Path

import pytest
from sluice.config.load import parse

from tools import gen_docs
from tools.docs.commands import check
from tools.docs.markdown import FENCE, ROOT, blocks, dead_links, paragraphs, words

GENERATED = {ROOT / "docs" / name for name in (*gen_docs.PAGES, "reference/contract.md")}
RESULTS = sorted(set(ROOT.glob("docs/results/*.md")) - {ROOT / "docs/results/README.md"})
"""Pages that the experiments generate, which have tests of their own."""
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "ptf-tests/README.md"} - {ROOT / "CHANGELOG.md", *RESULTS}
)
PARAGRAPH_WORDS = 100

each = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@each
def test_no_paragraph_is_long(page: Path) -> None:
    long = [
        f"{words(paragraph)} words: {paragraph[:60]}..."
        for paragraph in paragraphs(page.read_text())
        if words(paragraph) > PARAGRAPH_WORDS
    ]
    assert long == []


@each
def test_rows_of_tables_are_whole(page: Path) -> None:
    rows = [line for line in FENCE.sub("", page.read_text()).splitlines() if line.startswith("|")]
    assert [row for row in rows if not row.endswith("|")] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_pages_named_in_sources_exist() -> None:
    names = ["Makefile", *(f"{top}/**/*.{kind}" for top in ("controller", "topo", "tools", "sim") for kind in ("py",))]
    named = {
        (str(path.relative_to(ROOT)), page)
        for name in names
        for path in ROOT.glob(name)
        if path != Path(__file__)
        for page in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text())
    }
    assert [(path, page) for path, page in sorted(named) if not (ROOT / page).exists()] == []


@each
def test_commands_would_run(page: Path) -> None:
    for block in blocks(page.read_text(), "sh"):
        for line in block.splitlines():
            check(line)


@each
def test_targets_modules_and_commands_in_the_text_exist(page: Path) -> None:
    for code in re.findall(r"`((?:[A-Z]+=\S+ )*(?:make|sluice|python -m) [a-z][^`\n]*)`", page.read_text()):
        if "..." not in code and "\\|" not in code:
            check(re.sub(r"\[|\]", "", code))


@each
def test_whole_configurations_are_good(page: Path) -> None:
    for block in blocks(page.read_text(), "yaml"):
        if "interfaces:" in block and "services:" in block:
            parse(block)


def test_generated_pages_are_what_their_sources_say() -> None:
    assert gen_docs.main(["--check"]) == 0


def claims(row: str) -> list[tuple[str, str]]:
    """Return the tests in a row of the compliance table, as pairs of a file's path in the repository and a function
    ("": all functions of the file)."""
    broken = []
    file = ""
    for word in re.findall(r"[\w:/.]+", row.rsplit("|", 2)[1]):
        if word.startswith("src/"):
            file = f"crates/p4runtime/{word}"
        elif word.startswith("cli::"):
            file = f"switch/cli/tests/suite/{word.removeprefix('cli::')}.rs"
        elif "::" in word:
            module, name = word.split("::")
            file = f"crates/p4runtime/tests/suite/{module}.rs"
            broken.append((file, name))
        elif "/" in word:
            broken.append((f"crates/p4runtime/{word}", ""))
        elif "_" in word:
            broken.append((file, word))
    return broken


def test_every_line_of_the_compliance_table_has_tests_that_exist() -> None:
    text = (ROOT / "docs/reference/p4runtime.md").read_text()
    rows = [row for row in text.splitlines() if row.startswith("| ") and not row.startswith(("| **", "| requirement "))]
    assert len(rows) > 60
    for row in rows:
        claimed = claims(row)
        assert any(name for _, name in claimed), f"no test: {row}"
        for file, name in claimed:
            source = (ROOT / file).read_text()
            test = rf"#\[(tokio::)?test\b[^\]]*\]\s*(#\[[^\]]*\]\s*)*(async )?fn {name}\("
            assert not name or re.search(test, source), f"{file} has no test {name}: {row}"
