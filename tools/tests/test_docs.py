"""What the docs say of the pipeline is what the pipeline is."""

import re
from pathlib import Path

from sluice.names import DropReason

ROOT = Path(__file__).resolve().parents[2]


def test_every_drop_reason_has_a_line_in_the_docs() -> None:
    text = (ROOT / "docs/pipeline.md").read_text()
    listed = {int(number): name for number, name in re.findall(r"^\| (\d+) \| (\w+) \|", text, re.MULTILINE)}
    assert listed == {reason.value: reason.name.lower() for reason in DropReason if reason is not DropReason.NONE}
