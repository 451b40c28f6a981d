"""Tests of STF's parser and matcher, and of the conversion of entries to P4Runtime; one test runs through a switch."""

import re
import shutil
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from sluice.replay.capturefile import CaptureError

from tools.stf.__main__ import main
from tools.stf.entries import Entries
from tools.stf.expectations import differences, matches
from tools.stf.programs import program_of
from tools.stf.runner import in_order
from tools.stf.statements import (
    Add,
    Call,
    CheckCounter,
    Command,
    Expect,
    Packet,
    SetDefault,
    StfError,
    parse,
)
from topo.testbed import captures
from topo.testbed.switches.embedded import BINARY as EMBEDDED

ROOT = Path(__file__).resolve().parents[2]

P4INFO = text_format.Parse(
    """
tables {
  preamble { id: 1 name: "ingress.t" }
  match_fields { id: 1 name: "hdr.a" bitwidth: 12 match_type: TERNARY }
  match_fields { id: 2 name: "hdr.stack[1].b" bitwidth: 32 match_type: LPM }
  match_fields { id: 3 name: "hdr.c.$valid$" bitwidth: 1 match_type: EXACT }
  action_refs { id: 7 }
}
tables { preamble { id: 2 name: "egress.t" } action_refs { id: 7 } }
actions { preamble { id: 7 name: "ingress.go" } params { id: 1 name: "port" bitwidth: 9 } }
""",
    p4i.P4Info(),
)


def test_statements() -> None:
    text = """
    # a comment
    ADD ingress.t 100 hdr.a:0x1** stack$1.b : 10/8 go(port:3, x:0x10) = A   # another
    add t k:0b1 nothing()
    setdefault t go(port:1)
    Packet 3 00 1122 ff
    expect 4 0* **22 $
    expect 5
    check_counter c(7) packets >= 2
    mc_node_create 400 6 7
    wait
    no_packet
    """
    assert parse(text) == [
        Add(3, "ingress.t", 100, (("hdr.a", "0x1**"), ("stack$1.b", "10/8")), Call("go", {"port": "3", "x": "0x10"})),
        Add(4, "t", None, (("k", "0b1"),), Call("nothing", {})),
        SetDefault(5, "t", Call("go", {"port": "1"})),
        Packet(6, 3, bytes.fromhex("001122ff")),
        Expect(7, 4, "0***22$"),
        Expect(8, 5, None),
        CheckCounter(9, "c", "7", "packets", ">=", 2),
        Command(10, "mc_node_create", ("400", "6", "7")),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("frobnicate 1", "'frobnicate' is no statement of STF"),
        ("packet", "a port is missing"),
        ("packet 1 0g", "non-hexadecimal"),
        ("expect 1 0$0", "'\\$' at its end"),
        ("add t k:1", "an action call is missing"),
        ("add t 1 2 a()", "a key is NAME:VALUE, not '2'"),
        ("add t a(1)", "an argument is NAME:VALUE, not '1'"),
        ("register_write r 1", "register_write takes 3 words"),
        ("check_counter c", "is expected"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(line: str, reason: str) -> None:
    with pytest.raises(StfError, match=f"line 2: .*{reason}"):
        parse(f"# first\n{line}")


def test_patterns() -> None:
    frame = bytes.fromhex("0a1b2c")
    assert matches("0a1b2c", frame)
    assert matches("0a", frame)
    assert matches("*a1*2c$", frame)
    assert not matches("0a1b2c00", frame)
    assert not matches("0a1b$", frame)
    assert not matches("0b", frame)


def test_every_port_is_held_against_what_is_expected_there() -> None:
    expected = [Expect(1, 1, "01"), Expect(2, 1, None), Expect(3, 2, "ff$"), Expect(4, 9, None)]
    assert differences(expected, {1: [b"\x01\x02", b"\x55"], 2: [b"\xff"], 3: [], 9: [b"a", b"b"]}) == []
    assert differences(expected, {1: [b"\x02", b"\x55"], 2: [], 3: [b"\x00"]}) == [
        "port 1, line 1: expected 01, got 02",
        "port 2: 1 packets are expected, 0 came",
        "port 3: 0 packets are expected, 1 came",
    ]


def entry(line: str) -> p4r.TableEntry:
    (add,) = parse(line)
    assert isinstance(add, Add)
    update = Entries(P4INFO).insert(add)
    assert update.type == p4r.Update.INSERT
    return update.entity.table_entry


def test_entries() -> None:
    made = entry("add ingress.t 5 a:0x1** stack$1.b:0x0a01**** c.valid:1 go(port:0x103)")
    assert (made.table_id, made.priority) == (1, 6)
    first, second, third = made.match
    assert (first.ternary.value, first.ternary.mask) == (b"\x01\x00", b"\x0f\x00")
    assert (second.lpm.value, second.lpm.prefix_len) == (b"\x0a\x01\x00\x00", 16)
    assert third.exact.value == b"\x01"
    assert made.action.action.params[0].value == b"\x01\x03"
    # STF tests write masks in complete digits, so a mask may have more bits than the field; the surplus is cut.
    first, _ = entry("add ingress.t 5 a:0x0234&&&0xfff0 go(port:1)").match
    assert (first.ternary.value, first.ternary.mask) == (b"\x02\x30", b"\x0f\xf0")
    # A ternary key of which no bit is specified is omitted; an exact key that the test does not name is written as 0.
    (only,) = entry("add ingress.t 5 a:0x*** go(port:1)").match
    assert (only.field_id, only.exact.value) == (3, b"\0")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("add nowhere 1 a:1 go(port:1)", "there is no table 'nowhere', only ingress.t, egress.t"),
        ("add t 1 a:1 go(port:1)", "table 't' may be ingress.t or egress.t"),
        ("add ingress.t 1 z:1 go(port:1)", "table ingress.t has no key 'z'"),
        ("add ingress.t 1 a:0x1000&&&0xf000 go(port:1)", "key hdr.a: 0x1000 has more than 12 bits"),
        ("add ingress.t 1 a:1 stay()", "there is no action of ingress.t 'stay'"),
        ("add ingress.t 1 a:1 go()", "parameter 'port' of go is missing"),
        ("add ingress.t 1 a:1 go(port:1, q:1)", "there is no parameter of go 'q'"),
    ],
)
def test_entries_that_do_not_fit_the_program(line: str, reason: str) -> None:
    with pytest.raises(StfError, match=reason):
        entry(line)


def test_captures_survive_the_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    frames = [b"", b"\x01" * 70_000]
    path.write_bytes(captures.HEADER + b"".join(captures.record(frame, 0, 0) for frame in frames))
    assert captures.read(path) == frames
    path.write_bytes(path.read_bytes()[:-1])
    assert captures.read(path) == frames[:1]
    path.write_bytes(b"nonsense that is long enough")
    with pytest.raises(CaptureError, match="not a capture"):
        captures.read(path)


def test_commands_come_in_their_place_or_first_where_several_ports_send() -> None:
    lines = ["packet 1 00", "add t a()", "packet {} 01", "setdefault t b()", "expect 1"]
    first, second = (in_order(parse("\n".join(lines).format(port))) for port in (1, 2))
    assert [statement.line for statement in first] == [1, 2, 3, 4]
    assert [statement.line for statement in second] == [2, 4, 1, 3]


FORWARDING = """
add ports port:1 set_port(mac:0x020000000101, inside:0)
add ports port:2 set_port(mac:0x020000000201, inside:1)
add routes destination:0x0a000200/24 connected()
add routes destination:0x0a000214/31 via(neighbour:7)
add neighbours neighbour:7 set_neighbour(port:2, src:0x020000000201, dst:0x020000000214)
packet 1 020000000101 0200000001aa 0800 4500001c0000000040110000 0a00010a 0a000214 0001000200080000
packet 1 020000000101 0200000001aa 0800 4500001c00000000401163b4 0a00010a 0a000214 0001000200080000
expect 2 020000000214 020000000201 0800 4500001c000000003f1164b4 0a00010a 0a000214 0001000200080000
# a command after packets waits for them: the route is not there for the last one
packet 1 020000000101 0200000001aa 0800 4500001c00000000401163b4 0a00010a 0a000214 0001000200080000
expect 2 0200000002** 020000000201 0800 4500001c0000
add routes destination:0x0a000214/32 via(neighbour:8)
packet 1 020000000101 0200000001aa 0800 4500001c00000000401163b4 0a00010a 0a000214 0001000200080000
"""


@pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")
def test_a_test_through_the_switch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in ("json", "p4info.txtpb"):
        (tmp_path / f"forwarding.{suffix}").symlink_to(ROOT / f"p4src/build/sluice.{suffix}")
    test = tmp_path / "forwarding.stf"
    test.write_text(FORWARDING)
    assert main([str(tmp_path)]) == 0, capsys.readouterr().out
    assert "1 passed, 0 failed, 0 skipped" in capsys.readouterr().out
    test.write_text(FORWARDING.replace("expect 2 020000000214", "expect 2 020000000215"))
    assert main([str(tmp_path)]) == 1
    assert "failed forwarding: port 2, line 9: expected 020000000215" in capsys.readouterr().out
    for right, wrong in (("port:1 set", "port:one set"), ("neighbour:7)", "neighbour:seven)")):
        test.write_text(FORWARDING.replace(right, wrong, 1))
        assert main([str(tmp_path)]) == 1
        out = capsys.readouterr().out
        assert re.search(r"forwarding: line \d+: .*" + wrong.partition(":")[2][:3], out), out


COUNTING = """
add exact_t dst:0x0200000000aa count_direct(port:2) = A
add exact_t dst:0x0200000000bb count_direct(port:2) = B
check_counter exact_hits($A)
packet 1 0200000000aa 0200000001aa 0900
check_counter exact_hits($A) packets == 1
check_counter exact_hits($A) bytes == 18 # with the frame check sequence
check_counter by_port(1) packets == 1
packet 1 0200000000aa 0200000001aa 0900
packet 1 0200000000bb 0200000001aa 0900 00
wait
check_counter exact_hits($A) packets == 2
check_counter exact_hits($B) bytes == 19
check_counter by_port(1) packets == 3
packet 1 0200000000aa 0200000001aa 0900
check_counter exact_hits($A) packets == 3
expect 2
"""


@pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")
def test_counters_are_checked_where_the_test_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for suffix in ("json", "p4info.txtpb"):
        (tmp_path / f"counting.{suffix}").symlink_to(ROOT / f"crates/p4runtime/tests/p4/everything.{suffix}")
    test = tmp_path / "counting.stf"
    test.write_text(COUNTING)
    assert main([str(tmp_path)]) == 0, capsys.readouterr().out
    capsys.readouterr()
    for right, wrong, said in (
        ("packets == 2", "packets == 1", "line 12: exact_hits($A) is 2 packets, not == 1"),
        ("($B)", "($C)", "line 13: exact_hits: its table has no entry with the label $C"),
        ("exact_hits($B)", "by_port($B)", "line 13: there is no direct counter 'by_port', only I.exact_hits"),
    ):
        test.write_text(COUNTING.replace(right, wrong))
        assert main([str(tmp_path)]) == 1
        assert said in capsys.readouterr().out


def test_counters_come_last_where_several_ports_send() -> None:
    lines = ["packet 1 00", "check_counter c(1)", "packet 2 01", "add t a()", "check_counter c($A)"]
    assert [step.line for step in in_order(parse("\n".join(lines)))] == [4, 1, 3, 2, 5]


@pytest.mark.skipif(not shutil.which("p4c-bm2-ss"), reason="p4c-bm2-ss is not on PATH")
def test_a_program_in_p4_14_is_compiled_as_such(tmp_path: Path) -> None:
    source = tmp_path / "forward.p4"
    source.write_text(P4_14)
    program = program_of(source.with_suffix(".stf"), tmp_path)
    assert [table.preamble.name for table in program.p4info.tables] == ["t"]


P4_14 = """
header_type h_t { fields { a : 8; } }
header h_t h;
parser start { extract(h); return ingress; }
action forward(port) { modify_field(standard_metadata.egress_spec, port); }
table t { reads { h.a : exact; } actions { forward; } size : 4; }
control ingress { apply(t); }
control egress { }
"""
