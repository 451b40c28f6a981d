"""The large build is the same program with larger sizes."""

import re
import shutil
from pathlib import Path

import pytest

from tools import p4


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("common", "v1model"):
        shutil.copytree(p4.P4SRC / folder, tmp_path / "p4src" / folder)
    return tmp_path


def test_sizes_and_slot_type_grow_together(copy: Path) -> None:
    p4.enlarge(copy)
    sizes = (copy / "p4src/common/sizes.p4").read_text()
    for name, size in p4.LARGE.items():
        assert re.search(rf"const bit<32> {name}\s*= {size};", sizes)
    assert (
        f"typedef bit<{p4.LARGE['CONNECTION_SLOTS'].bit_length() - 1}> pin_slot_t;"
        in (copy / "p4src/v1model/externs/pins.p4").read_text()
    )


def test_nothing_else_changes(copy: Path) -> None:
    p4.enlarge(copy)
    usual = (p4.P4SRC / "common/sizes.p4").read_text().splitlines()
    large = (copy / "p4src/common/sizes.p4").read_text().splitlines()
    assert sum(one != other for one, other in zip(usual, large, strict=True)) == len(p4.LARGE)


def test_a_size_that_went_away_is_named(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(p4.LARGE, "GONE", 7)
    with pytest.raises(p4.P4Error, match=r"sizes\.p4 has 0 places for .*GONE"):
        p4.enlarge(copy)
