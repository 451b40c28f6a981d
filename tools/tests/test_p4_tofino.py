"""Tests of the check of Tofino's program: which outputs count as errors, and the messages about missing tools."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from tools import p4_resources, p4_tofino
from tools.p4 import P4Error

END = "main.p4(9): [--Werror=Target model error] error: package Switch: main package  match the expected model\n"


def test_the_refusal_behind_the_front_end_is_no_error() -> None:
    assert p4_tofino.front_end_errors(END) == []


def test_an_error_of_the_program_is_one() -> None:
    error = "pins.p4(7): [--Werror=not-found] error: slot_3: declaration not found"
    assert p4_tofino.front_end_errors(f"{error}\n") == [error]
    assert p4_tofino.front_end_errors(f"{error}\n{END}") == [error]


def test_a_front_end_that_did_not_end_is_reported() -> None:
    with pytest.raises(P4Error, match="did not reach the end"):
        p4_tofino.front_end_errors("Compiler Bug\n")


def test_missing_headers_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(p4_tofino.HEADERS_VARIABLE, str(tmp_path))
    with pytest.raises(P4Error, match=r"has no tna\.p4"):
        p4_tofino.headers()


def test_without_the_tools_nothing_is_checked_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(p4_tofino.HEADERS_VARIABLE, raising=False)
    p4_tofino.check()
    assert "not type-checked" in capsys.readouterr().out


def test_without_the_back_end_the_remedy_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(P4Error, match="ENABLE_TOFINO"):
        p4_tofino.compile_command(p4_tofino.PROGRAMS["tofino"], tmp_path)


COMPILED = {name: program for name, program in p4_tofino.PROGRAMS.items() if program.manifest.exists()}
EACH_PROGRAM = pytest.mark.parametrize("program", COMPILED.values(), ids=COMPILED)


@EACH_PROGRAM
def test_an_edited_artefact_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: p4_tofino.Program
) -> None:
    copy = replace(program, folder=tmp_path / "p4src/build" / program.name)
    shutil.copytree(program.folder, copy.folder)
    monkeypatch.setattr(p4_tofino, "ROOT", tmp_path)
    p4_tofino.check_artefacts(copy)
    (copy.folder / "bfrt.json").write_text("{}")
    with pytest.raises(P4Error, match=rf"edited by hand, or missing: p4src/build/{program.name}/bfrt\.json"):
        p4_tofino.check_artefacts(copy)


def test_only_a_program_for_tofino_can_be_built(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        p4_tofino.main(["build", "large"])
    assert "invalid choice: 'large'" in capsys.readouterr().err


PARSER = """parser ingress:
  start: $init_match
  states:
    $entry_point.start:
      match: [ byte1 ]
      0b0*******:
        next: parse_ethernet
    parse_ethernet:
{match}      0x0800:
        next: end
parser egress:
  states:
    parse_vlan:
      match: [ half ]
"""


def test_a_parser_that_lost_its_selects_is_noticed() -> None:
    assert p4_tofino.has_selects(PARSER.format(match="      match: [ half ]\n"))
    assert not p4_tofino.has_selects(PARSER.format(match=""))
    assert not p4_tofino.has_selects(PARSER.format(match="      match: [ ]\n"))
    assert not p4_tofino.has_selects("")


@EACH_PROGRAM
def test_the_program_that_is_kept_fits_a_pipe_and_is_whole(program: p4_tofino.Program) -> None:
    outcome = json.loads(program.manifest.read_text())["outcome"]
    assert outcome["fits"] is True
    assert outcome["stages"] <= p4_resources.CHIPS[program.chip].stages
    context = json.loads((program.folder / p4_tofino.CONTEXT).read_text())
    names = {table["name"] for table in context["tables"]}
    info = text_format.Parse((program.folder / "sluice.p4info.txtpb").read_text(), p4i.P4Info())
    assert len(info.tables) > 10
    assert {table.preamble.name for table in info.tables} <= names
    assert {register.preamble.name for register in info.registers} <= names


def test_the_last_round_of_placement_counts(tmp_path: Path) -> None:
    log = tmp_path / "pipe/logs/table_summary.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "Number of stages in table allocation: 40\n"
        "Critical path length through the table dependency graph: 31\n"
        "Number of stages in table allocation: 38\n"
        "  Number of stages for ingress table allocation: 38\n"
        "  Number of stages for egress table allocation: 15\n"
    )
    outcome = p4_resources.outcome(tmp_path)
    assert outcome == {
        "stages": 38,
        "ingress_stages": 38,
        "egress_stages": 15,
        "critical_path": 31,
        "fits": False,
    }


def test_a_program_that_is_placed_beyond_the_last_stage_does_not_fit(tmp_path: Path) -> None:
    log = tmp_path / "table_summary.log"
    log.write_text("Number of stages in table allocation: 13\n")
    assert p4_resources.outcome(tmp_path)["fits"] is False
    log.write_text("Number of stages in table allocation: 12\n")
    assert p4_resources.outcome(tmp_path)["fits"] is True


def test_a_report_is_measured_by_the_chip_that_it_is_of(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"target": "tofino2"}))
    log = tmp_path / "table_summary.log"
    log.write_text("Number of stages in table allocation: 20\n")
    assert p4_resources.outcome(tmp_path)["fits"] is True
    log.write_text("Number of stages in table allocation: 21\n")
    assert p4_resources.outcome(tmp_path)["fits"] is False
    (tmp_path / "resources.json").write_text(json.dumps({"resources": {"mau": {"mau_stages": [stage(rams=2)]}}}))
    (tmp_path / "phv.json").write_text(json.dumps({"containers": [{"container_type": "mocha", "bit_width": 16}]}))
    lines = p4_resources.table(tmp_path).splitlines()
    assert "| SRAM blocks | 2 | 1600 | 2 of 80 |" in lines
    assert "| PHV containers of 16 bits, mocha | 1 | 24 | |" in lines


def test_a_configuration_names_the_chip_and_its_binary() -> None:
    written = json.dumps(p4_tofino.configuration(p4_tofino.PROGRAMS["tofino2"]))
    assert '"chip_family": "tofino2"' in written
    assert '"config": "pipe/tofino2.bin"' in written


def test_the_chain_is_reported_before_any_allocation(tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(
        "    Maximum stage number according to dependences: \n      INGRESS: 50\n      EGRESS: 12\n"
        "error: PHV allocation was not successful\n"
        "      INGRESS: 49\n      EGRESS: 11\n"
    )
    outcome = p4_resources.outcome(tmp_path)
    assert outcome == {"ingress_chain": 51, "egress_chain": 13}


def stage(**taken: int) -> dict[str, dict[str, list[object]]]:
    """Return a stage as in resources.json that uses the given numbers of units, and none of the other units."""
    return {unit: {key: [{}] * taken.get(unit, 0)} for unit, key, _each in p4_resources.RESOURCES.values()}


def test_a_complete_report_becomes_a_table(tmp_path: Path) -> None:
    stages = [stage(rams=33, map_rams=33, meter_alus=1), stage(rams=2, hash_bits=51)]
    (tmp_path / "resources.json").write_text(json.dumps({"resources": {"mau": {"mau_stages": stages}}}))
    used = [{"container_type": "normal", "bit_width": 32}] * 3 + [{"container_type": "tagalong", "bit_width": 8}]
    (tmp_path / "phv.json").write_text(json.dumps({"containers": used}))
    lines = p4_resources.table(tmp_path).splitlines()
    assert "| SRAM blocks | 35 | 960 | 33 of 80 |" in lines
    assert "| hash bits | 51 | 4992 | 51 of 416 |" in lines
    assert "| meter and stateful ALUs | 1 | 48 | 1 of 4 |" in lines
    assert "| PHV containers of 32 bits | 3 | 64 | |" in lines
    assert "| PHV containers of 8 bits, tagalong | 1 | 32 | |" in lines


def test_a_report_without_placement_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileNotFoundError, match="did not come to table placement"):
        p4_resources.table(tmp_path)
    assert p4_resources.main([str(tmp_path)]) == 1
    assert f"no resources.json in {tmp_path}: p4c did not come to" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        p4_resources.main(["--help"])
    assert "[FOLDER]" in capsys.readouterr().out


def test_a_compile_that_came_to_no_placement_says_nothing_of_it(tmp_path: Path) -> None:
    assert p4_resources.outcome(tmp_path) == {}
