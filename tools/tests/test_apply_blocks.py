"""Tests of `tools.apply_blocks`: what counts as a line of an apply block, and which sources are refused, with their
location."""

import sys
from pathlib import Path

import pytest

from tools import apply_blocks
from tools.apply_blocks import MOST_LINES, blocks, broken
from tools.p4_sources import P4SRC

SHORT = """// A control { with a brace in its comment.
control Short(inout bit<8> field) {
    RegisterAction<bit<8>, bit<8>, bit<8>>(cells) read = {
        void apply(inout bit<8> cell, out bit<8> value) {
            value = cell;
        }
    };

    action clear() { field = 0; }

    apply {
        // a comment

        if (field == 1) {       // counts
            clear();            /* counts, and the
                                   comment does not } */
        }
        #pragma counts
    }
}
"""


def control(lines: int) -> str:
    statements = "        field = field + 1;\n" * lines
    return f"control Other(inout bit<8> field) {{\n    apply {{\n{statements}    }}\n}}\n"


def source(folder: Path, text: str) -> Path:
    path = folder / "stage.p4"
    path.write_text(text)
    return path


def test_comments_blanks_and_braces_do_not_count() -> None:
    action, apply = blocks(SHORT)
    assert (action.control, action.action, action.length) == ("Short", "clear", 1)
    assert (apply.control, apply.action, apply.length) == ("Short", "", 4)


def test_the_limit_is_the_last_length_that_passes(tmp_path: Path) -> None:
    assert list(broken(source(tmp_path, SHORT + control(MOST_LINES)))) == []


def test_a_longer_block_is_named_with_its_line(tmp_path: Path) -> None:
    path = source(tmp_path, SHORT + control(MOST_LINES + 1))
    (problem,) = broken(path)
    line = SHORT.count("\n") + 2
    assert problem.startswith(
        f"{path}({line}): the apply block of Other has {MOST_LINES + 1} lines, at most {MOST_LINES}"
    )


APPLY_WITH_CONDITION = """control C() {
    apply {
        a();
#if defined(X)
        b();
#endif
    }
}
"""
ACTION_WITH_CONDITION = """control C() {
    action a(bit<8> b) {
#ifdef X
        c();
#endif
    }
    apply { }
}
"""


@pytest.mark.parametrize(
    ("text", "place"),
    [(APPLY_WITH_CONDITION, "(4): the apply block of C"), (ACTION_WITH_CONDITION, "(3): the action a of C")],
)
def test_a_condition_inside_is_named_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    path = source(tmp_path, text)
    (problem,) = broken(path)
    assert problem.startswith(f"{path}{place}")
    assert "condition inside" in problem


def test_a_condition_around_whole_blocks_passes(tmp_path: Path) -> None:
    text = "control C() {\n#if defined(X)\n    apply { a(); }\n#else\n    action b() { }\n    apply { }\n#endif\n}\n"
    assert list(broken(source(tmp_path, text))) == []


def test_the_command_fails_for_a_folder_with_an_offender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = source(tmp_path, control(MOST_LINES + 1))
    monkeypatch.setattr(sys, "argv", ["apply_blocks", str(tmp_path)])
    assert apply_blocks.main() == 1
    assert f"{path}(2): " in capsys.readouterr().err


def test_the_sources_pass() -> None:
    paths = sorted(P4SRC.rglob("*.p4"))
    assert any(block.length > 20 for path in paths for block in blocks(path.read_text()))
    assert [problem for path in paths for problem in broken(path)] == []
