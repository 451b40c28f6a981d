"""Tests of the commands `simple_switch` and `simple_switch_CLI`, which run the embedded switch in place of BMv2, and of
the P4Info that they derive from a program's JSON."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from finsy.proto import p4i
from google.protobuf import text_format

from tools.bmv2.p4info import p4info_of
from tools.bmv2.session import Session
from tools.stf.control import Control
from tools.stf.statements import Add, Call, Command, SetDefault
from topo.testbed import captures
from topo.testbed.switches.embedded import BINARY as EMBEDDED
from topo.testbed.switches.piped import Pipes

ROOT = Path(__file__).resolve().parents[2]
FRONT_ENDS = ROOT / "tools/bmv2"
WAIT_S = 60.0

PROGRAMS = [
    ROOT / "p4src/build/sluice.json",
    ROOT / "crates/p4runtime/tests/p4/everything.json",
    *(ROOT / "switch/engine/tests/p4" / f"{name}.json" for name in ("arrays", "paths", "selector", "tables")),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_p4info_is_the_compilers_but_for_ids(program: Path) -> None:
    made = p4info_of(json.loads(program.read_text()))
    compilers = text_format.Parse(program.with_suffix(".p4info.txtpb").read_text(), p4i.P4Info())
    assert made.pkg_info.arch == compilers.pkg_info.arch, "a program may have nothing else, and no P4Info is empty"
    for objects in ("counters", "meters", "registers"):
        shapes = [{item.preamble.name: item.size for item in getattr(info, objects)} for info in (made, compilers)]
        assert shapes[0] == shapes[1]
    tables = {table.preamble.name: table for table in made.tables}
    direct = [table for table in compilers.tables if not table.implementation_id]
    assert {table.preamble.name for table in direct} <= set(tables)
    for table in direct:
        mine = tables[table.preamble.name]
        assert keys(mine) == keys(table)
        assert actions(mine, made) == actions(table, compilers)
        assert mine.is_const_table == table.is_const_table


def keys(table: p4i.Table) -> list[tuple[str, int, int]]:
    """Return name, width in bits and match type of a table's key fields. Optional counts as ternary, as in the JSON."""
    kinds = p4i.MatchField
    return [
        (field.name, field.bitwidth, kinds.TERNARY if field.match_type == kinds.OPTIONAL else field.match_type)
        for field in table.match_fields
    ]


def actions(table: p4i.Table, info: p4i.P4Info) -> dict[str, list[tuple[str, int]]]:
    known = {action.preamble.id: action for action in info.actions}
    used = (known[reference.id] for reference in table.action_refs)
    return {action.preamble.name: [(param.name, param.bitwidth) for param in action.params] for action in used}


class Recorder(Control):
    """A control plane that records statements but executes none."""

    def __init__(self) -> None:
        self.statements: list[Add | SetDefault | Command] = []

    def carry_out(self, statement: Add | SetDefault | Command) -> str | None:
        self.statements.append(statement)
        return "done"


P4INFO = text_format.Parse(
    """
tables {
  preamble { id: 1 name: "ingress.t" }
  match_fields { id: 1 name: "hdr.a" bitwidth: 48 match_type: TERNARY }
  match_fields { id: 2 name: "hdr.b" bitwidth: 32 match_type: LPM }
  action_refs { id: 7 }
}
actions {
  preamble { id: 7 name: "ingress.go" }
  params { id: 1 name: "port" bitwidth: 9 } params { id: 2 name: "next" bitwidth: 128 }
}
""",
    p4i.P4Info(),
)


def session(lines: str) -> tuple[list[Add | SetDefault | Command], str]:
    """Type `lines` into simple_switch_CLI's prompt; return the statements that it executes, and its replies."""
    recorder, replies = Recorder(), StringIO()
    Session(recorder, P4INFO, StringIO(lines), replies).cmdloop()
    return recorder.statements, replies.getvalue()


def test_commands() -> None:
    statements, replies = session(
        "table_add ingress.t go 0:0:0:0:1:ff&&&0xffff 10.0.1.0/24 => 3 ::1 10\n"
        "\n"
        "table_set_default t ingress.go 0x1 2\n"
        "mc_node_create 400 6 7\n"
    )
    assert statements == [
        Add(
            line=0,
            table="ingress.t",
            priority=(1 << 31) - 2 - 10,
            keys=(("hdr.a", "0x1ff&&&0xffff"), ("hdr.b", "0xa000100/24")),
            call=Call("ingress.go", {"port": "3", "next": "0x1"}),
        ),
        SetDefault(0, "ingress.t", Call("ingress.go", {"port": "0x1", "next": "2"})),
        Command(0, "mc_node_create", ("400", "6", "7")),
    ]
    assert replies.endswith("RuntimeCmd: done\nRuntimeCmd: \n")


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("table_add t go 1&&&1 1/1 => 1 2", "Error: action ingress.go takes 2 arguments"),
        ("table_add t go 1&&&1 1/1 =>", "Error: entries of table ingress.t need a priority"),
        ("table_add t go 1&&&1 => 1 2 3", "Error: table ingress.t takes 2 fields of a key"),
        ("table_add t go 1&&&1 1/1 1 2 3", "Error: table ingress.t takes 2 fields of a key, and => behind them"),
        ("table_add t", "Error: 2 words or more are expected, not 't'"),
        ("table_set_default u go 1 2", "Error: there is no table 'u', only ingress.t"),
        ("table_set_default t stay", "Error: there is no action of ingress.t 'stay', only ingress.go"),
        ("packet 1 00", "*** Unknown syntax: packet 1 00"),
    ],
)
def test_what_cannot_be_carried_out_is_answered(line: str, answer: str) -> None:
    statements, replies = session(f"{line}\nmc_mgrp_create 1\n")
    assert answer in replies
    assert statements[-1] == Command(0, "mc_mgrp_create", ("1",))


COMMANDS = """\
table_add ports set_port 1 => 02:00:00:00:01:01 0
table_add ports set_port 2 => 0x020000000201 1
table_add routes connected 10.0.2.0/24 =>
table_add routes via 10.0.2.20/32 => 7
table_add neighbours set_neighbour 7 => 2 02:00:00:00:02:01 02:00:00:00:02:14
table_add nowhere set_port 1 =>
register_write sample_next 0 77
register_write sample_next 0 -1
register_read sample_next 0
counter_read offered 0
mirroring_add 1 2 3
"""
FRAME = "020000000101 0200000001aa 0800 4500001c00000000401163b4 0a00010a 0a000214 0001000200080000"
FORWARDED = "020000000214 020000000201 0800 4500001c000000003f1164b4 0a00010a 0a000214 0001000200080000"


@pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")
def test_a_runners_way_through_both(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    (tmp_path / "p2_in.pcap").write_bytes(captures.HEADER)
    pipes = Pipes({1: tmp_path / "p1_in.pcap"}, captures.HEADER)
    words = ["--log-file", "switch.log", "--log-flush", "--use-files", "0", "--dump-packet-data", "10240"]
    words += ["--thrift-port", port, "--device-id", "7", "-i 1@p1", "-i 2@p2", str(ROOT / "p4src/build/sluice.json")]
    # The test calls the commands by name, as BMv2's test runners do.
    environment = {**os.environ, "PATH": f"{FRONT_ENDS}:{os.environ['PATH']}"}
    switch = subprocess.Popen(["simple_switch", *words], cwd=tmp_path, env=environment)
    try:
        until(lambda: serves(int(port)), switch)
        cli = ["simple_switch_CLI", "--thrift-port", port]
        said = subprocess.check_output(cli, input=COMMANDS, env=environment, text=True, timeout=WAIT_S)
        replies = [reply for reply in said.replace("RuntimeCmd: ", "").splitlines() if reply]
        assert [reply.partition(", only")[0] for reply in replies[1:]] == [
            "Error: there is no table 'nowhere'",
            "Error: can't convert negative int to unsigned",
            "sample_next[0]= 77",
            "offered[0]= (0 bytes, 0 packets)",
            "Error: mirroring_add: too many positional arguments",
        ]
        pipes.write(1, captures.record(bytes.fromhex(FRAME), 0, 0))
        until(lambda: bool(captures.read(tmp_path / "p2_out.pcap")), switch)
        switch.terminate()
        assert switch.wait(WAIT_S) == 0
    finally:
        pipes.close()
        switch.kill()
        switch.wait()
    assert captures.read(tmp_path / "p2_out.pcap") == [bytes.fromhex(FORWARDED)]


def serves(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until(true: Callable[[], bool], switch: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not true():
        assert switch.poll() is None, "the switch has ended"
        assert time.monotonic() < deadline
        time.sleep(0.05)
