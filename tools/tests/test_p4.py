"""Checks that the build `large` differs only in sizes, that the build `twin` (parts of Tofino's program, compiled for
v1model) has the control plane of v1model's program, and that ids are unique."""

import re
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from tools import gen_judge, p4, p4_sources
from tools.target_contract import ONLY_V1MODEL


def p4info(folder: str) -> p4i.P4Info:
    return text_format.Parse((p4.BUILD / folder / "sluice.p4info.txtpb").read_text(), p4i.P4Info())


def test_the_large_build_differs_in_nothing_but_sizes() -> None:
    own, large = p4info(""), p4info("large")
    grown = {each.preamble.alias for each, other in zip(large.registers, own.registers, strict=True) if each != other}
    slots = {"pin_key_1", "pin_key_2", "pin_server_1", "pin_server_2"}
    assert grown > slots | {"splice_cells", "cap_agreed", "closing_state"}
    assert [each.preamble.alias for each, other in zip(large.tables, own.tables, strict=True) if each != other] == [
        "routes"
    ]
    for register in large.registers:
        name = register.preamble.alias
        if name == "closing_hint":  # has more cells, and wider ones: each contains the number of a slot
            assert register.size == p4_sources.sizes("LARGE")["CLOSING_HINTS"]
        elif name in grown:
            size = "CONNECTION_SLOTS" if name in slots else "SPLICES"
            assert register.size == p4_sources.sizes("LARGE")[size]


def test_the_sources_of_a_build_are_the_files_that_it_includes() -> None:
    v1model, twin = (p4.sources(p4.BUILDS[name]) for name in ("", "twin"))
    assert "p4src/v1model/front.p4" in v1model.keys() - twin.keys()
    assert "p4src/tna/judge_table.p4" in twin.keys() - v1model.keys()
    paths = {f"{path.relative_to(p4.ROOT)}" for path in p4.P4SRC.rglob("*.p4")}
    assert paths == p4.sources(*p4.BUILDS.values(), *p4.TOFINO_BUILDS.values()).keys(), (
        "a file that no program includes"
    )


def named(info: p4i.P4Info) -> dict[str, object]:
    """Return all named objects by full name, without aliases, which depend on the other objects."""
    lists = (info.tables, info.actions, info.registers, info.counters, info.meters, info.action_profiles, info.digests)
    for each in (each for objects in lists for each in objects):
        each.preamble.alias = ""
    return {each.preamble.name: each for objects in lists for each in objects}


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("// new\nbit<8> a; /* b\n c */\n\n  bit<8> b; // d\n", True),
        ("bit<8> a;\nbit<8> b;", True),
        ("bit<8> a;\nbit<9> b;\n", False),
        ("bit<8> a;\n", False),
    ],
)
def test_a_hash_of_code_ignores_comments_and_nothing_else(tmp_path: Path, text: str, same: bool) -> None:
    first, second = tmp_path / "first.p4", tmp_path / "second.p4"
    first.write_text("bit<8> a;\nbit<8> b;\n")
    second.write_text(text)
    assert (p4.code_sha256(first) == p4.code_sha256(second)) == same


def test_two_slashes_in_a_string_are_code(tmp_path: Path) -> None:
    first, second = tmp_path / "first.p4", tmp_path / "second.p4"
    first.write_text('@name("a//b") x;\n')
    second.write_text('@name("a//c") x;\n')
    assert p4.code_sha256(first) != p4.code_sha256(second)


def test_the_twin_offers_the_same_control_plane_but_for_what_only_v1model_has() -> None:
    own, twins = named(p4info("")), named(p4info("twin"))
    only = {name.rpartition(".")[2] for name in own.keys() - twins.keys()}
    looks = {"choose_other_servers", "load_third", "load_fourth", "stale_third", "stale_fourth"}
    looks |= {"refusing_third", "refusing_fourth"}
    idle = {"idle_ends", "idle_queue", "idle_ticket_first", "idle_ticket_head", "stale_idle"}
    seeking = {"idle_members", "seek_idle", "seek_nobody", *idle}
    beside_tofinos_front = {"draw_point", "candidate_key", "candidate_pin", "moved", "disowned", *looks, *seeking}
    assert only == {name for _, name in ONLY_V1MODEL} - beside_tofinos_front
    offering = {"SluiceIngress.classify.services", "SluiceIngress.classify.origins"}
    """The tables in which only one of the two programs has some of the actions."""
    assert {name for name in twins if own[name] != twins[name]} == offering


RANGE = re.compile(r"^// [\w ]+(?:, (0x[0-9a-f]+) to (0x[0-9a-f]+))?\. Next free: (0x[0-9a-f]+)$")


def test_ids_are_in_their_range_once_and_the_next_free_one_is_said() -> None:
    sections = (p4.P4SRC / "common/ids.p4").read_text().split("\n\n")
    seen: set[tuple[str, int]] = set()
    for section in sections:
        head, *_ = section.splitlines()
        if not (match := RANGE.match(head)):
            continue
        first, past = int(match[1] or "1", 0), int(match[2] or "0xffffff", 0) + 1
        ids = [(name, int(value, 0)) for name, value, _ in p4_sources.ID.findall(section)]
        for name, value in ids:
            where = name.partition("_")[0], value
            assert where not in seen, f"{name} has a number that was given"
            assert first <= value < past, f"{name} is out of its range"
            seen.add(where)
        assert int(match[3], 0) == max((value for _, value in ids), default=first - 1) + 1, head
    assert len(seen) == len(p4_sources.ids())


@pytest.mark.parametrize("enum", ["DropReason", "PuntReason"])
def test_reasons_go_on_without_gaps_and_the_next_free_one_is_said(enum: str) -> None:
    text = (p4.P4SRC / "common/ids.p4").read_text()
    values = [member.value for member in p4_sources.enums(p4.P4SRC / "common/ids.p4")[enum]]
    assert values == [*range(len(values))]
    said = re.search(rf"Next free: (\d+)\nenum bit<8> {enum} ", text)
    assert said and int(said[1]) == len(values)


def test_a_condition_takes_one_branch(tmp_path: Path) -> None:
    source = tmp_path / "sizes.p4"
    source.write_text(
        "#ifndef GUARD\n#if defined(A)\nconst int N = 1;\n#elif defined(B)\nconst int N = 2;\n#else\nconst int N = 3;\n"
        "#endif\nconst bit<32> CELLS = 1 << N;\n#endif\n"
    )
    assert [p4_sources.constants(source, *names)["CELLS"] for names in (["A"], ["B"], ["A", "B"], [])] == [
        "2",
        "4",
        "2",
        "8",
    ]


def test_a_rule_of_the_judge_names_its_fields() -> None:
    fields = {"sent": "findings.sent", "known": "meta.known"}
    assert gen_judge.entry({"do": "drop()", "known": False}, fields).strip() == "(_, false) : drop();"
    with pytest.raises(gen_judge.RuleError, match=r"drop\(\) that names no field: sended"):
        gen_judge.entry({"do": "drop()", "sended": 1}, fields)


def test_every_stage_says_at_its_head_what_it_does() -> None:
    heads = {each.name: each.parts for each in p4_sources.stages()}
    assert {path.stem for path in p4_sources.P4SRC.glob("stages/*.p4")} <= heads.keys()
    assert all(parts.keys() & {"writes", "drops", "reads, writes"} for parts in heads.values())
    assert heads["second_look"]["writes"].endswith("of refusing_* (whether a server refuses connections)")


def test_a_row_of_a_head_goes_on_behind_a_comma(tmp_path: Path) -> None:
    source = tmp_path / "stage.p4"
    source.write_text(
        "// Stage: text.\n//\n//   reads  a,\n//          b: more\n//          c\n#ifndef S\n// drops  d\n"
    )
    stage = p4_sources.stage(source)
    assert stage and stage.parts == {"reads": "a, b: more; c"}
    assert p4_sources.has_lists(source)


def test_a_members_comment_has_all_of_its_lines(tmp_path: Path) -> None:
    source = tmp_path / "x.p4"
    lines = ["none  = 0,  // nothing", "begin = 1,  // the first", "            // of two", "end = 2"]
    source.write_text("\n    ".join(["enum bit<8> Step {", *lines]) + "\n}\n")
    assert [member.text for member in p4_sources.enums(source)["Step"]] == ["nothing", "the first of two", ""]
