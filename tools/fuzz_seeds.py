"""Writes seeds for the fuzz targets of fuzz/: programs, packets, P4Runtime requests, and seeds kept in git."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tools.differential.frames import Frames
from topo.testbed import REPOSITORY as ROOT

CORPUS = ROOT / "fuzz/corpus"
KEPT = ROOT / "fuzz/seeds"
"""Folder of the seeds in git. The fuzz targets of rules and agent start from these seeds; ordinary tests also run
them."""
P4_FOLDERS = ("switch/engine/tests/p4", "crates/p4runtime/tests/p4")
EVERYTHING = ROOT / "crates/p4runtime/tests/p4/everything.p4info.txtpb"
SEEDS = 200
PACKETS = 8
"""The number of packets in each script."""
PACKET = 0
"""The byte with which a packet begins in a script; see fuzz/src/lib.rs."""
WRITE, READ, PIPELINE, STREAM = 0, 1, 2, 3
"""First bytes of inputs of the fuzz target `p4runtime`, by kind of request."""


def script(frames: list[tuple[int, bytes]]) -> bytes:
    """Return packets as an untraced script for `sluice_fuzz::play`. A delay (0), the byte PACKET, the port
    and the length precede each packet."""
    steps = (
        b"\0\0" + bytes([PACKET]) + port.to_bytes(2, "big") + len(frame).to_bytes(2, "big") + frame
        for port, frame in frames
    )
    return b"\0" + b"".join(steps)


def requests(p4info: p4i.P4Info, rng: random.Random) -> list[bytes]:
    """Return requests that write an entry with every action of every table, and requests that read all entities of a
    kind, such as all counters."""
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


OTHERS = """
action_profile_member { action_profile_id: 0x11000001 member_id: 1
  action { action_id: 0x01000002 params { param_id: 1 value: "\\1" } } }
action_profile_group { action_profile_id: 0x11000001 group_id: 1 max_size: 4 members { member_id: 1 weight: 2 } }
meter_entry { meter_id: 0x14000001 index { index: 1 } config { cir: 1 cburst: 1 pir: 2 pburst: 2 } counter_data {} }
counter_entry { counter_id: 0x12000001 index { index: 1 } data { packet_count: 1 byte_count: 64 } }
register_entry { register_id: 0x16000002 index { index: 1 } data { bitstring: "\\5" } }
register_entry { register_id: 0x16000003 data { bitstring: "\\377" } }
value_set_entry { value_set_id: 0x03000001 members { match { field_id: 1 exact { value: "\\010\\000" } } } }
packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 1 metadata: "m"
  replicas { port: "\\1" instance: 1 backup_replicas { port: "\\2" instance: 1 } }
  replicas { egress_port: 3 instance: 2 } } }
packet_replication_engine_entry { clone_session_entry { session_id: 7 packet_length_bytes: 60
  replicas { port: "\\1" instance: 1 } } }
direct_meter_entry { table_entry { table_id: 0x02000001 is_default_action: true }
  config { cir: 1 cburst: 1 pir: 2 pburst: 2 } }
direct_counter_entry { table_entry { table_id: 0x02000001 is_default_action: true } data { packet_count: 1 } }
table_entry { table_id: 0x02000003 is_default_action: true metadata: "m" action { action { action_id: 0x01000005 } } }
"""
"""A default entry, and entities other than table entries, for the tests' program `everything.p4`. A line without
indentation begins an entity."""


def others(p4info: p4i.P4Info) -> list[bytes]:
    """Return requests for the entities in OTHERS and for digests, stream messages, and requests to set the pipeline."""
    texts = re.split(r"\n(?=\w)", OTHERS.strip())
    entities = [text_format.Parse(text, p4r.Entity()) for text in texts]
    entities += [p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=digest.preamble.id)) for digest in p4info.digests]
    made: list[bytes] = []
    for kind in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
        updates = [p4r.Update(type=kind, entity=entity) for entity in entities]
        requests = [p4r.WriteRequest(updates=[update]) for update in updates]
        requests.append(p4r.WriteRequest(updates=updates, atomicity=p4r.WriteRequest.ROLLBACK_ON_ERROR))
        made += [bytes([WRITE]) + request.SerializeToString() for request in requests]
    everything = p4r.ReadRequest(entities=entities)
    made.append(bytes([READ]) + everything.SerializeToString())
    metadata = [p4r.PacketMetadata(metadata_id=number, value=b"\1") for number in (1, 2, 3)]
    packet = p4r.PacketOut(payload=bytes(60), metadata=metadata)
    made.append(bytes([STREAM]) + p4r.StreamMessageRequest(packet=packet).SerializeToString())
    bid = p4r.MasterArbitrationUpdate(device_id=3, election_id=p4r.Uint128(low=1))
    made.append(bytes([STREAM]) + p4r.StreamMessageRequest(arbitration=bid).SerializeToString())
    acknowledgements = (p4r.DigestListAck(digest_id=digest.preamble.id, list_id=1) for digest in p4info.digests)
    made += [bytes([STREAM]) + p4r.StreamMessageRequest(digest_ack=a).SerializeToString() for a in acknowledgements]
    for action in p4r.SetForwardingPipelineConfigRequest.Action.values():
        config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=b"{}")
        request = p4r.SetForwardingPipelineConfigRequest(
            action=action, config=None if action == p4r.SetForwardingPipelineConfigRequest.COMMIT else config
        )
        made.append(bytes([PIPELINE]) + request.SerializeToString())
    return made


def main() -> None:
    """Write all seeds; every run writes the same bytes."""
    rng = random.Random(1)
    frames = Frames(rng)
    shutil.copytree(KEPT, CORPUS, dirs_exist_ok=True)
    for target in ("program", "sluice", "others", "p4runtime"):
        (CORPUS / target).mkdir(parents=True, exist_ok=True)
    for folder in P4_FOLDERS:
        for program in (ROOT / folder).glob("*.json"):
            shutil.copy(program, CORPUS / "program" / program.name)
    for number in range(SEEDS):
        traffic = script(frames.take(PACKETS))
        _write("sluice", number, traffic)
        _write("others", number, number.to_bytes(2, "big") + traffic)
    everything = text_format.Parse(EVERYTHING.read_text(), p4i.P4Info())
    for number, request in enumerate(requests(everything, rng) + others(everything)):
        _write("p4runtime", number, request)


def _write(target: str, number: int, data: bytes) -> None:
    Path(CORPUS / target / f"seed-{number}").write_bytes(data)


if __name__ == "__main__":
    main()
