"""Tests of the differential test: the generators produce frames and writes of every kind, and the comparison finds
differences. If BMv2 is installed, a short run against BMv2 is included."""

import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tools.differential import compare, frames, model, side
from tools.differential.frames import Frames, checksum
from tools.differential.side import Side, State, last_words, require_running
from tools.differential.world import CLIENTS, CPU_PORT, PORTS, TCP, UDP, VIPS, World
from topo.testbed import REPOSITORY as ROOT
from topo.testbed.entities import Entities
from topo.testbed.errors import SetupError
from topo.testbed.switches.embedded import BINARY as EMBEDDED
from topo.testbed.switches.piped import await_quiet

BITS = re.compile(r"#define CLOSING_(\w+) (\d+):(\d+)")
P4INFO = text_format.Parse((ROOT / "p4src/build/sluice.p4info.txtpb").read_text(), p4i.P4Info())


def test_frames_are_those_of_the_seed() -> None:
    assert Frames(random.Random(7)).take(200) == Frames(random.Random(7)).take(200)
    assert Frames(random.Random(7)).take(200) != Frames(random.Random(8)).take(200)


def test_frames_cover_a_routers_traffic() -> None:
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


TIMES = {
    "closing.closing_state": ((26, 32), (0, 21)),
    "closing.closing_hint": ((0, 31),),
    "connections.key_1.pin_key_1": ((0, 32),),
}


@pytest.mark.parametrize(("register", "times"), TIMES.items(), ids=TIMES)
def test_only_the_times_in_a_cell_may_differ(register: str, times: tuple[tuple[int, int], ...]) -> None:
    name, cell = f"SluiceIngress.{register}", (1 << 62) - 1
    width = 62 if register.endswith("state") else 64
    timed = {low + bit for low, bits in times for bit in range(bits)}
    for bit in range(width):
        changed = cell ^ 1 << bit
        if bit not in timed:
            assert compare.sluice_registers(name, cell, changed), f"bit {bit}"
    for low, _ in times:
        later = cell & ~(0xFFFF << low)
        assert not compare.sluice_registers(name, cell, later), "ticks of another clock"
        assert compare.sluice_registers(name, cell, later ^ 1 << width - 1), "more than the time"
    for low, bits in times:
        assert compare.sluice_registers(name, cell, cell ^ 1 << low + bits - 1), "a time that is days apart"
    wrapped = times[-1][1]
    assert not compare.sluice_registers(name, (1 << wrapped) - 1, 0), "a time that wrapped"


def test_the_times_are_where_the_program_has_them() -> None:
    text = (ROOT / "p4src/v1model/closing_cells.p4").read_text()
    fields = {name: (int(low), int(high) - int(low) + 1) for name, high, low in BITS.findall(text)}
    assert compare.TIMES["closing_state"] == (fields["LAST"], fields["PROBED"])
    (stamp,) = compare.TIMES["closing_hint"]
    assert f"meta.now[{stamp[1] - 1}:{stamp[0]}]);" in text


def test_a_process_is_quiet_when_it_has_read_everything_and_sleeps() -> None:
    read, write = os.pipe()
    program = "import sys; [None for _ in sys.stdin.buffer]"
    with subprocess.Popen([sys.executable, "-c", program], stdin=read) as process:
        assert await_quiet(process.pid, [read], 20)
        os.kill(process.pid, 19)  # SIGSTOP: the process reads nothing from its pipe
        os.write(write, b"x\n")
        assert not await_quiet(process.pid, [read], 0.3)
        os.kill(process.pid, 18)
        assert await_quiet(process.pid, [read], 20)
        os.close(write)
        os.close(read)


@contextmanager
def two_switches(tmp_path: Path) -> Generator[tuple[Side, Side]]:
    """Run two embedded switches with sluice's program."""
    with (
        Side("one", EMBEDDED, tmp_path / "one", PORTS, CPU_PORT) as first,
        Side("other", EMBEDDED, tmp_path / "other", PORTS, CPU_PORT) as second,
    ):
        for each in (first, second):
            each.load(P4INFO, (ROOT / "p4src/build/sluice.json").read_bytes())
        yield first, second


def within_a_minute(act: Callable[[], None]) -> SetupError | None:
    """Run an action; return the SetupError that it raises within a minute, or None if it raises none."""
    raised: list[SetupError] = []

    def acting() -> None:
        try:
            act()
        except SetupError as error:
            raised.append(error)

    thread = threading.Thread(target=acting, daemon=True)
    thread.start()
    thread.join(60)
    return raised[0] if raised else None


@pytest.mark.skipif(not EMBEDDED.exists(), reason=f"{EMBEDDED} is not built")
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("when", ["packets", "updates"])
def test_a_switch_that_dies_is_named_at_once_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, victim: int, when: str
) -> None:
    monkeypatch.setattr(side, "QUIET_S", 3600.0)
    frames = Frames(random.Random(1)).take(5000)
    updates = World(Entities(P4INFO), random.Random(1)).start()
    with two_switches(tmp_path) as sides:
        process = sides[victim].switch.process
        with process.log.open("a") as log:
            log.write("a word about an emptied group\n")

        def a_round() -> None:
            os.kill(process.pid, signal.SIGKILL)
            for side in sides if when == "packets" else ():
                side.send(frames, b"\xff" * 14)
            for side in sides if when == "packets" else ():
                side.await_quiet(lambda: require_running(sides))
            with last_words(sides):
                for side in sides:
                    side.write(updates)

        error = within_a_minute(a_round)
        assert error is not None, "it waits"
        assert f"the switch '{('one', 'other')[victim]}' ended with exit code -9" in str(error)
        assert "a word about an emptied group" in str(error)


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


def test_what_a_tofino_is_sent_has_ethernets_least_length_and_comes_in_stretches_of_a_port() -> None:
    frames = model.Frames(random.Random(7)).take(100)
    assert min(len(frame) for _, frame in frames) == 60
    for at in range(0, 100, model.STRETCH):
        ports = [port for port, _ in frames[at : at + model.STRETCH]]
        assert ports == sorted(ports)


def test_groups_that_a_tofino_is_given_have_one_member_that_stays() -> None:
    world = model.World(Entities(P4INFO), random.Random(3))
    chosen: dict[tuple[int, bytes], set[bytes]] = {}
    for updates in (world.start(), *(world.change() for _ in range(200))):
        for update in updates:
            if not update.entity.table_entry.action.HasField("action_profile_action_set"):
                continue
            entry = update.entity.table_entry
            (member,) = entry.action.action_profile_action_set.action_profile_actions
            key = entry.table_id, entry.match[0].exact.value
            chosen.setdefault(key, set()).add(member.action.params[0].value)
    assert len(chosen) == 8 and all(len(servers) == 1 for servers in chosen.values())


def test_a_tofinos_packets_are_compared_and_not_its_bytes() -> None:
    twin = State(
        {"SluiceIngress.ledger.ledger_syn": [1]}, {"SluiceIngress.verdict.counters.verdicts": {0: (2, 120)}}, {}
    )
    tofino = State(twin.registers, {"SluiceIngress.verdict.counters.verdicts": {0: (2, 128)}}, {})
    assert model.comparable(twin) == model.comparable(tofino)
    fewer = State(twin.registers, {"SluiceIngress.verdict.counters.verdicts": {0: (1, 124)}}, {})
    assert model.comparable(twin) != model.comparable(fewer)
    assert model.comparable_output({1: [b"\1"], "controller": [b"\1"]}) == {
        1: [b"\1" + bytes(59)],
        "controller": [b"\1"],
    }


def test_a_tofino_is_sent_nothing_that_it_takes_otherwise_by_design() -> None:
    source = random.Random(5)
    assert not any(rule(frame) for _, frame in model.Frames(source).take(2000) for rule in model.BY_DESIGN)
    client, service = (CLIENTS[0], 20_000), (VIPS[0], 80)
    syn = frames.tcp(client, service, frames.SYN, b"")

    def framed(payload: bytes) -> bytes:
        return frames.ethernet(1, 7, frames.IPV4, payload)

    def error(about: bytes) -> bytes:
        return framed(frames.packet(client[0], service[0], 1, frames.icmp(3, 3, bytes(4) + about)))

    plain = framed(frames.packet(client[0], service[0], TCP, syn))
    inside = frames.packet(service[0], client[0], TCP, syn)
    assert not any(rule(each) for each in (plain, error(inside)) for rule in model.BY_DESIGN)
    assert model.is_cut(plain[:-1])
    assert model.ends_in_checksum(plain[:-4])
    assert not model.ends_in_checksum(plain[:-5])
    assert model.is_syn_with_options(framed(frames.packet(client[0], service[0], TCP, syn, options=bytes(4))))
    wrong = inside[:8] + b"\1" + inside[9:]
    assert model.has_wrong_checksum_inside(error(wrong))
    echo = frames.icmp(8, 0, bytes(4) + wrong)
    assert not model.has_wrong_checksum_inside(framed(frames.packet(client[0], service[0], 1, echo)))
    about_udp = [
        error(frames.packet(service[0], client[0], UDP, frames.udp(service, client, b"", summed=flag)))
        for flag in (True, False)
    ]
    assert about_udp[0] != about_udp[1]
    assert model.comparable_frame(about_udp[0]) == model.comparable_frame(about_udp[1])
    first, second = error(inside), error(frames.packet(service[0], client[0], TCP, syn, ttl=9))
    assert model.comparable_frame(first) != model.comparable_frame(second)
