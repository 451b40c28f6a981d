"""Writes seeds for the targets of switch/fuzz: the tests' programs, sluice's traffic, writes to a test's tables."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tools.differential.frames import Frames
from tools.target.process import ROOT

CORPUS = ROOT / "switch/fuzz/corpus"
P4_FOLDERS = ("switch/engine/tests/p4", "switch/p4runtime/tests/p4")
EVERYTHING = ROOT / "switch/p4runtime/tests/p4/everything.p4info.txtpb"
SEEDS = 200
PACKETS = 8
"""In a script."""
PACKET = 0
"""What a script calls a packet; see switch/fuzz/src/lib.rs."""
WRITE, READ = 0, 1
"""Kinds of requests of the target p4runtime."""


def script(frames: list[tuple[int, bytes]]) -> bytes:
    """Packets as a script of `sluice_fuzz::play`: untraced, a time in between, a port and a length before each."""
    steps = (
        b"\0\0" + bytes([PACKET]) + port.to_bytes(2, "big") + len(frame).to_bytes(2, "big") + frame
        for port, frame in frames
    )
    return b"\0" + b"".join(steps)


def requests(p4info: p4i.P4Info, rng: random.Random) -> list[bytes]:
    """Writes of an entry into every table, and reads of everything."""
    actions = {action.preamble.id: action for action in p4info.actions}
    made: list[bytes] = []
    for table in p4info.tables:
        for reference in table.action_refs:
            entry = p4r.TableEntry(table_id=table.preamble.id, priority=1)
            for field in table.match_fields:
                match = entry.match.add(field_id=field.id)
                value = rng.randbytes((field.bitwidth + 7) // 8)
                if field.match_type == p4i.MatchField.EXACT:
                    match.exact.value = value
                elif field.match_type == p4i.MatchField.LPM:
                    match.lpm.value, match.lpm.prefix_len = value, field.bitwidth
                elif field.match_type == p4i.MatchField.TERNARY:
                    match.ternary.value = match.ternary.mask = value
                elif field.match_type == p4i.MatchField.OPTIONAL:
                    match.optional.value = value
                else:
                    match.range.low = match.range.high = value
            action = p4r.Action(action_id=reference.id)
            for param in actions[reference.id].params:
                action.params.add(param_id=param.id, value=b"\1")
            if table.implementation_id:
                entry.action.action_profile_action_set.action_profile_actions.add(action=action, weight=2)
            else:
                entry.action.action.CopyFrom(action)
            update = p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))
            made.append(bytes([WRITE]) + p4r.WriteRequest(updates=[update]).SerializeToString())
    for kind in ("table_entry", "counter_entry", "meter_entry", "register_entry", "direct_counter_entry"):
        entity = p4r.Entity()
        getattr(entity, kind).SetInParent()
        made.append(bytes([READ]) + p4r.ReadRequest(entities=[entity]).SerializeToString())
    return made


def main() -> None:
    """Write all seeds. The same ones every time."""
    rng = random.Random(1)
    frames = Frames(rng)
    for target in ("program", "sluice", "others", "p4runtime"):
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
    for folder in P4_FOLDERS:
        for program in (ROOT / folder).glob("*.json"):
            shutil.copy(program, CORPUS / "program" / program.name)
    for number in range(SEEDS):
        traffic = script(frames.take(PACKETS))
        _write("sluice", number, traffic)
        _write("others", number, number.to_bytes(2, "big") + traffic)
    for number, request in enumerate(requests(text_format.Parse(EVERYTHING.read_text(), p4i.P4Info()), rng)):
        _write("p4runtime", number, request)


def _write(target: str, number: int, data: bytes) -> None:
    Path(CORPUS / target / f"seed-{number}").write_bytes(data)


if __name__ == "__main__":
    main()
