"""Tests of `tools.stage_heads`: the effects that it derives from a control's text, and its messages about a stage file
whose head comment lists too few or too many names."""

from pathlib import Path

import pytest

from tools import stage_heads
from tools.p4 import BUILDS, P4Error
from tools.p4_effects import Access, Program, preprocessed
from tools.stage_heads import Names, broken

TYPES = """
enum bit<8> DropReason { none = 0, first = 1, second = 2 }
struct verdict_t { DropReason drop; bit<8> port; }
struct meta_t { bit<8> a; bit<8> b; @field_list(1) bit<8> c; DropReason reason; }
struct hdr_t { ipv4_h ipv4; }
"""


def program(body: str, others: str = "", file: str = "stage.p4", other_file: str = "other.p4") -> Program:
    """Return a program that consists of a control with the usual parameters, and of other controls in another file."""
    return Program(
        f'# 1 "{other_file}"\n{TYPES}{others}\n# 1 "{file}"\n'
        "control Stage(inout hdr_t hdr, inout meta_t meta, in bit<8> given, out bit<8> made,"
        " inout verdict_t verdict) {\n"
        f"{body}\n}}\n"
    )


def paths(accesses: set[Access]) -> list[str]:
    return sorted(".".join(path) + (f" by {via}" if via else "") for path, via in accesses)


@pytest.mark.parametrize(
    ("body", "needs", "writes"),
    [
        ("apply { meta.a = meta.b; }", ["meta.b"], ["meta.a"]),
        ("apply { meta.a[3:0] = given[3:0]; bit<8> local = meta.c; }", ["given", "meta.c"], ["meta.a"]),
        ("apply { meta.a = 1; if (meta.a == 1) { meta.b = meta.a; } }", [], ["meta.a", "meta.b"]),
        ("apply { if (given == 1) meta.a = 1; else meta.b = meta.a; }", ["given", "meta.a"], ["meta.a", "meta.b"]),
        ("apply { if (given == 1) { meta.a = 1; } meta.b = meta.a; }", ["given"], ["meta.a", "meta.b"]),
        (
            "apply { switch (given) { 1: { meta.a = meta.c; } default: { meta.b = meta.a; } } made = meta.b; }",
            ["given", "meta.a", "meta.c"],
            ["made", "meta.a", "meta.b"],
        ),
        ("apply { meta = { 1, given, 3, DropReason.none }; made = meta.a; }", ["given"], ["made", "meta"]),
        ("apply { made = 1; meta.a = made; }", [], ["made", "meta.a"]),
        ("apply { if (hdr.ipv4.isValid()) { hdr.ipv4.setInvalid(); } }", ["hdr.ipv4"], ["hdr.ipv4"]),
        ("apply { @in_hash { made = 1w0 ++ (bit<7>)meta.a; } }", ["meta.a"], ["made"]),
        ("register<bit<8>>(8) cells; apply { cells.read(meta.a, (bit<32>)meta.b); }", ["meta.b"], ["meta.a"]),
        ("apply { hash(made, HashAlgorithm.crc32, 0, { meta.a, given }, 256); }", ["given", "meta.a"], ["made"]),
        ("action set(bit<8> meta) { made = meta; } apply { set(given); }", ["given"], ["made"]),
        ("action set(inout bit<8> x) { x = x + 1; } apply { set(meta.a); }", ["meta.a"], ["meta.a"]),
    ],
)
def test_what_statements_read_and_write(body: str, needs: list[str], writes: list[str]) -> None:
    stage = program(body)
    effects = stage.effects(stage.controls["Stage"])
    assert (paths(effects.needs), paths(effects.writes)) == (needs, writes)


def test_a_table_reads_its_key_and_does_what_all_its_actions_do() -> None:
    stage = program("""
    @id(1) action set(bit<8> value) { meta.a = value; }
    action give(DropReason reason) { verdict.drop = reason; verdict.port = meta.b; }
    action nothing() { }
    table rules {
        key = { meta.c : ternary @name("c"); hdr.ipv4.isValid() : exact; }
        actions = { set; give; @defaultonly nothing; }
        const entries = { (1, true) : give(DropReason.first); (DropReason.second, _) : set(2); }
        const default_action = give(DropReason.none);
        size = 8;
    }
    apply { if (rules.apply().hit) { made = 1; } }""")
    effects = stage.effects(stage.controls["Stage"])
    assert paths(effects.needs) == ["hdr.ipv4", "meta.b", "meta.c"]
    assert paths(effects.writes) == ["made", "meta.a", "verdict.drop", "verdict.port"]
    assert paths(effects.reasons) == ["DropReason.first", "DropReason.none"]


def test_a_comparison_gives_no_reason() -> None:
    stage = program("apply { if (verdict.drop == DropReason.first) { verdict.drop = DropReason.second; } }")
    assert paths(stage.effects(stage.controls["Stage"]).reasons) == ["DropReason.second"]


OTHERS = """
bit<8> bounded(in bit<8> value, inout bit<8> limit) { limit = limit - 1; return value; }
control Other(in bit<8> value, out bit<8> result, inout DropReason drop) {
    Register<bit<8>, bit<8>>(8) cells;
    RegisterAction<bit<8>, bit<8>, bit<8>>(cells) swap = {
        void apply(inout bit<8> cell, out bit<8> before) { before = cell; cell = value; }
    };
    apply { result = swap.execute(value); drop = DropReason.first; }
}
"""


def test_what_is_called_counts_in_the_names_of_the_caller() -> None:
    body = "Other() other; apply { other.apply(bounded(meta.b, meta.c), meta.a, meta.reason); verdict.port = meta.a; }"
    stage = program(body, OTHERS)
    effects = stage.effects(stage.controls["Stage"])
    assert paths(effects.needs) == ["meta.b", "meta.c"]
    assert paths(effects.writes) == ["meta.a by other", "meta.c", "meta.reason by other", "verdict.port"]
    assert paths(effects.reasons) == ["DropReason.first by other"]


def test_an_unknown_statement_is_refused() -> None:
    stage = program("apply { for (bit<8> i in 1 .. 8) { made = i; } }")
    with pytest.raises(P4Error, match="for"):
        stage.effects(stage.controls["Stage"])


def test_a_list_has_rows_with_names_and_explanations() -> None:
    names = Names("a, hdr.b (with, text): for c, or d; what x, y and z read; the cells of load_*; ")
    assert (names.fields, names.files) == ({"a", "hdr.b"}, {"x", "y", "z"})


def head(*lists: str) -> str:
    return "".join(f"//   {line}\n" for line in lists)


def check(folder: Path, text: str, body: str, title: str = "// Stage: an example.\n//\n") -> list[str]:
    """Return the messages about a stage whose file has this head and body."""
    (folder / "stage.p4").write_text(f"{title}{text}#ifndef STAGE\n")
    (folder / "other.p4").write_text("#ifndef OTHER\n")
    return broken([program(body, OTHERS)], folder)[1]


APPLIES = "Other() other; apply { other.apply(meta.b, meta.a, verdict.drop); if (meta.c == 1) { made = meta.a; } }"


@pytest.mark.parametrize(
    ("lists", "problems"),
    [
        (["reads  b, c", "writes a, made", "drops  first: always"], []),
        (["reads  meta.b, c", "writes a", "       made", "drops  first"], []),
        (["reads  what other reads; c", "writes what other writes; made", "drops  what other drops"], []),
        (["reads  b, c, a", "writes a, made", "drops  first"], []),
        (["reads  meta", "writes a, made", "drops  first"], []),
        (["reads  c", "writes a, made", "drops  first"], ["`reads` lacks b"]),
        (["reads  b, c", "writes a, made, b", "drops  first"], ["`writes` names b: not written"]),
        (["reads  b, c, hdr", "writes a, made", "drops  first"], ["`reads` names hdr: not read"]),
        (["reads  b, c", "writes a, made, drop", "drops  first"], ["`writes` names drop: not written"]),
        (
            ["reads  b, c", "writes a, made", "drops  second"],
            ["`drops` lacks first", "`drops` names second: not a reason to drop"],
        ),
        (
            ["reads  b, c", "writes a, made, what third writes", "drops  first"],
            ["`writes` names what third writes: not written"],
        ),
        (
            ["reads  b, c", "writes a, made; what third writes", "drops  first"],
            ["`writes` names third: not written"],
        ),
    ],
)
def test_a_head_is_refused_with_what_is_missing_and_what_is_too_much(
    tmp_path: Path, lists: list[str], problems: list[str]
) -> None:
    assert check(tmp_path, head(*lists), APPLIES) == [f"stage.p4: {problem}" for problem in problems]


def test_reads_and_writes_are_one_list_where_they_are_the_same(tmp_path: Path) -> None:
    body = "apply { meta.a = meta.a - 1; }"
    assert check(tmp_path, head("reads, writes a"), body) == []
    assert check(tmp_path, head("reads, writes a, b"), body) == [
        "stage.p4: `reads` names b: not read",
        "stage.p4: `writes` names b: not written",
    ]


def test_what_one_control_of_a_file_writes_the_other_need_not_read(tmp_path: Path) -> None:
    (tmp_path / "stage.p4").write_text("// Stage: an example.\n//\n//   reads  c\n//   writes a, b\n#ifndef STAGE\n")
    controls = """
control First(inout meta_t meta) { apply { meta.a = meta.c; } }
control Second(inout meta_t meta) { apply { meta.b = meta.a; } }
"""
    assert broken([Program(f'# 1 "stage.p4"\n{TYPES}{controls}')], tmp_path) == (1, [])


@pytest.mark.parametrize(
    ("path", "refused"), [("v1model/main.p4", True), ("v1model/front.p4", True), ("v1model/helper.p4", False)]
)
def test_a_file_that_a_path_applies_needs_a_head(tmp_path: Path, path: str, refused: bool) -> None:
    (tmp_path / "v1model").mkdir()
    (tmp_path / path).write_text("#ifndef PATH\n")
    (tmp_path / "other.p4").write_text("// No name with lists.\n#ifndef OTHER\n")
    _, problems = broken([program(APPLIES, OTHERS, file=path)], tmp_path)
    assert [problem.split(":")[0] for problem in problems] == ["other.p4"] * refused


def test_lists_without_the_name_of_a_stage_are_refused(tmp_path: Path) -> None:
    lists = head("reads  b, c", "writes a, made", "drops  first")
    assert len(check(tmp_path, lists, APPLIES, title="// An example, without its name.\n//\n")) == 1


def test_a_build_is_preprocessed_for_its_target() -> None:
    twin, v1model = (preprocessed(BUILDS[name]) for name in ("twin", ""))
    assert '"p4src/twin/front.p4"' in twin
    assert '"p4src/twin/front.p4"' not in v1model


def test_without_a_preprocessor_the_command_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert stage_heads.main() == 1
    assert "no cpp on PATH" in capsys.readouterr().err


def test_the_sources_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert stage_heads.main() == 0
    assert int(capsys.readouterr().out.split()[0]) > 60
