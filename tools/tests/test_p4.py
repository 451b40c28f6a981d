"""The large build is the same program with larger sizes, the twin with parts of Tofino's."""

import re
import shutil
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

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


def test_the_twin_has_every_part_that_it_names(tmp_path: Path) -> None:
    for path in p4.sources():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(p4.ROOT / path, tmp_path / path)
    p4.twin(tmp_path)
    for name, other in p4.TWIN.items():
        assert (tmp_path / "p4src/v1model" / name).read_text() == (p4.P4SRC / other).read_text()
        assert (p4.P4SRC / "v1model" / name).exists(), "it stands in no file's place"


def test_the_twin_offers_a_control_plane_the_same() -> None:
    own, twins = (
        text_format.Parse((p4.BUILD / folder / "sluice.p4info.txtpb").read_text(), p4i.P4Info())
        for folder in ("", p4.TWIN_BUILD)
    )
    for info in (own, twins):
        for action in info.actions:
            action.preamble.alias = ""
    assert own == twins
