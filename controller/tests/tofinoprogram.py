"""A stand-in for the program compiled for Tofino: the P4Info of the v1model program with what is another's on TNA."""

from __future__ import annotations

import json
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format
from sluice.names import Register
from sluice.switch.pipeline import INFO, artefacts

PAIRS = {
    Register.PIN_KEY_1: "pin_key_t",
    Register.PIN_KEY_2: "pin_key_t",
    Register.ADMITTED_CLIENTS: "client_t",
    Register.RATE_FLOW: "rate_flow_t",
}
STAMP = "f1"


def info(*, stamp: str = STAMP, members: int = 4096, group: int = 256) -> p4i.P4Info:
    """P4Info with arch "tna", pairs as structs whose second half is named ``stamp``, and selectors of those sizes."""
    found = text_format.Parse((artefacts() / INFO).read_text(), p4i.P4Info())
    found.pkg_info.arch = "tna"
    for register in found.registers:
        if (name := PAIRS.get(Register(register.preamble.name))) is not None:
            register.type_spec.Clear()
            register.type_spec.struct.name = name
    for name in PAIRS.values():
        struct = found.type_info.structs[name]
        struct.ClearField("members")
        for member in ("fingerprint", stamp):
            added = struct.members.add(name=member)
            added.type_spec.bitstring.bit.bitwidth = 32
    for profile in found.action_profiles:
        profile.size, profile.max_group_size = members, group
    return found


def write(folder: Path, found: p4i.P4Info | None = None) -> Path:
    """A folder as p4c leaves it."""
    (folder / "pipe").mkdir(parents=True)
    (folder / INFO).write_text(text_format.MessageToString(found or info()))
    (folder / "bfrt.json").write_text('{"tables": []}')
    (folder / "pipe" / "context.json").write_text('{"stages": []}')
    (folder / "pipe" / "tofino.bin").write_bytes(bytes(range(256)))
    pipeline = {
        "p4_pipeline_name": "pipe",
        "context": "share/tofinopd/sluice/pipe/context.json",
        "config": "share/tofinopd/sluice/pipe/tofino.bin",
        "pipe_scope": [0, 1, 2, 3],
    }
    program = {"program-name": "sluice", "bfrt-config": "share/tofinopd/sluice/bfrt.json", "p4_pipelines": [pipeline]}
    (folder / "sluice.conf").write_text(json.dumps({"p4_devices": [{"device-id": 0, "p4_programs": [program]}]}))
    return folder
