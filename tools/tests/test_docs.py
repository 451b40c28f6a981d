"""What the docs say of the pipeline and of tests is so."""

import re
from pathlib import Path

from sluice.names import DropReason

ROOT = Path(__file__).resolve().parents[2]


def test_every_drop_reason_has_a_line_in_the_docs() -> None:
    text = (ROOT / "docs/reference/pipeline.md").read_text()
    listed = {int(number): name for number, name in re.findall(r"^\| (\d+) \| (\w+) \|", text, re.MULTILINE)}
    assert listed == {reason.value: reason.name.lower() for reason in DropReason if reason is not DropReason.NONE}


def claims(row: str) -> list[tuple[str, str]]:
    """What shows a line of the compliance table: files below `switch` and functions there ("": the file alone)."""
    found = []
    file = ""
    for word in re.findall(r"[\w:/.]+", row.rsplit("|", 2)[1]):
        if word.startswith("src/"):
            file = f"p4runtime/{word}"
        elif word.startswith("cli::"):
            file = f"cli/tests/suite/{word.removeprefix('cli::')}.rs"
        elif "::" in word:
            module, name = word.split("::")
            file = f"p4runtime/tests/suite/{module}.rs"
            found.append((file, name))
        elif "/" in word:
            found.append((f"p4runtime/{word}", ""))
        elif "_" in word:
            found.append((file, word))
    return found


def test_every_line_of_the_compliance_table_has_tests_that_exist() -> None:
    text = (ROOT / "docs/reference/p4runtime.md").read_text()
    rows = [row for row in text.splitlines() if row.startswith("| ") and not row.startswith(("| **", "| requirement "))]
    assert len(rows) > 60
    for row in rows:
        found = claims(row)
        assert any(name for _, name in found), f"no test: {row}"
        for file, name in found:
            source = (ROOT / "switch" / file).read_text()
            test = rf"#\[(tokio::)?test\b[^\]]*\]\s*(async )?fn {name}\("
            assert not name or re.search(test, source), f"{file} has no test {name}: {row}"
