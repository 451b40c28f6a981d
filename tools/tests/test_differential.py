"""The generators make what they say, the comparison finds what differs; a short run against BMv2 where it is there."""

import os
import random
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from testbed.switches.embedded import BINARY as EMBEDDED
from tools.differential import compare
from tools.differential.frames import Frames, checksum
from tools.differential.side import State
from tools.differential.world import PORTS, World
from tools.target.entities import Entities
from tools.target.process import ROOT
from tools.target.quiet import await_quiet

P4INFO = text_format.Parse((ROOT / "p4src/build/sluice.p4info.txtpb").read_text(), p4i.P4Info())


def test_frames_are_those_of_the_seed() -> None:
    assert Frames(random.Random(7)).take(200) == Frames(random.Random(7)).take(200)
    assert Frames(random.Random(7)).take(200) != Frames(random.Random(8)).take(200)


def test_frames_have_what_a_router_meets() -> None:
    seen: Counter[str] = Counter()
    for port, frame in Frames(random.Random(1)).take(4000):
        assert port in PORTS
        assert frame, "a capture holds no empty frame on BMv2"
        if len(frame) < 34 or frame[12:14] != b"\x08\x00" or frame[14] >> 4 != 4:
            seen[frame[12:14].hex()] += 1
            continue
        header = frame[14 : 14 + 4 * (frame[14] & 15)]
        seen["options"] += frame[14] > 0x45
        seen["right checksum"] += checksum(header) == 0
        (fragment,) = struct.unpack("!H", frame[20:22])
        seen["fragment"] += fragment & 0x3FFF != 0
        seen[f"protocol {frame[23]}"] += 1
        if frame[23] == 6 and frame[14] == 0x45 and fragment == 0x4000 and len(frame) > 54:
            length = struct.unpack("!H", frame[16:18])[0] - 20
            segment = frame[34:]
            pseudo = frame[26:34] + struct.pack("!BBH", 0, 6, length)
            seen["right TCP checksum"] += len(segment) == length and checksum(pseudo + segment) == 0
    for wanted in (
        "0806",
        "8100",
        "options",
        "fragment",
        "protocol 1",
        "protocol 6",
        "protocol 17",
        "right TCP checksum",
    ):
        assert seen[wanted] > 50, (wanted, seen)
    assert seen["right checksum"] > 2000


def test_changes_are_valid_one_after_the_other() -> None:
    world = World(Entities(P4INFO), random.Random(3))
    there: set[tuple[int, str]] = set()
    kinds: Counter[str] = Counter()
    for updates in (world.start(), *(world.change() for _ in range(300))):
        for update in updates:
            entity = update.entity
            kind = entity.WhichOneof("entity")
            entry = entity.table_entry
            if kind == "table_entry" and not entry.is_default_action:
                key = (entry.table_id, str(entry.match))
                assert (key in there) == (update.type != p4r.Update.INSERT)
                (there.discard if update.type == p4r.Update.DELETE else there.add)(key)
            kinds[f"{p4r.Update.Type.Name(update.type)} {kind}"] += 1
    assert len(there) == len(world.there)
    for wanted in ("INSERT table_entry", "MODIFY table_entry", "DELETE table_entry", "MODIFY meter_entry"):
        assert kinds[wanted] > 20, kinds


def test_meters_do_not_depend_on_time_nor_are_they_written_as_they_are() -> None:
    world = World(Entities(P4INFO), random.Random(3))
    last: dict[tuple[int, int], str] = {}
    for _ in range(200):
        for update in world.change():
            if update.entity.WhichOneof("entity") == "meter_entry":
                entry = update.entity.meter_entry
                assert (entry.config.cir, entry.config.pir) == (0, 0)
                cell = entry.meter_id, entry.index.index
                assert last.get(cell) != str(entry.config)
                last[cell] = str(entry.config)


def test_outputs() -> None:
    report = compare.Report()
    compare.outputs(report, "r", {1: [b"a", b"b"], "controller": []}, {1: [b"a", b"b"], "controller": []})
    assert not report
    compare.outputs(report, "r", {1: [b"a", b"b", b"b"], 2: [b"x", b"y"]}, {1: [b"b", b"c"], 2: [b"y", b"x"]})
    assert report.counts == {"only the embedded switch sent": 2, "only BMv2 sent": 1, "another order": 1}
    assert report.examples["only BMv2 sent"] == ["r, port 1: 63"]


def state(cells: list[int], key: int = 0) -> State:
    name = "SluiceIngress.connections.key_1.pin_key_1"
    return State({"r": cells, name: [key]}, {"c": {1: (1, 60)}}, {"t": frozenset({"e"})})


def test_states() -> None:
    fingerprint = 0x1234 << 32
    report = compare.Report()
    compare.states(report, state([1], fingerprint | 50), state([1], fingerprint | 900), compare.sluice_registers)
    assert not report, "stamps of another clock"
    compare.states(report, state([1], fingerprint | 50), state([2], fingerprint), compare.sluice_registers)
    assert report.examples == {"register": ["r[0]: 0x1, 0x2 on BMv2"]}
    compare.states(report, state([], fingerprint), state([], 2 * fingerprint), compare.sluice_registers)
    compare.states(report, state([], 0), state([], 1 << 30), compare.sluice_registers)
    assert report.counts == {"register": 3}
    other = State({}, {"c": {1: (2, 60)}, "d": {}}, {"t": frozenset()})
    compare.states(report, state([]), other, compare.sluice_registers)
    assert (report.counts["counter"], report.counts["table entry"]) == (1, 1)


def test_a_process_is_quiet_when_it_has_read_everything_and_sleeps() -> None:
    read, write = os.pipe()
    program = "import sys; [None for _ in sys.stdin.buffer]"
    with subprocess.Popen([sys.executable, "-c", program], stdin=read) as process:
        assert await_quiet(process.pid, [read], 20)
        os.kill(process.pid, 19)  # SIGSTOP: it reads nothing
        os.write(write, b"x\n")
        assert not await_quiet(process.pid, [read], 0.3)
        os.kill(process.pid, 18)
        assert await_quiet(process.pid, [read], 20)
        os.close(write)
        os.close(read)


@pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")
@pytest.mark.skipif(not shutil.which("simple_switch_grpc"), reason="simple_switch_grpc is not on PATH")
@pytest.mark.parametrize("subject", [[], ["--content"]], ids=["services", "content"])
def test_bmv2_does_the_same(subject: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.differential", *subject, "--packets", "2000"]
    command += ["--results", str(tmp_path / "r.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")
def test_tofinos_tables_do_the_same(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.differential", "--twin", "--packets", "5000"]
    command += ["--results", str(tmp_path / "r.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
