"""The program compiled for Tofino, as far as a controller sees it: its P4Info, or one that differs on purpose."""

from __future__ import annotations

import json
from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format
from sluice.switch.pipeline import INFO, artefacts

STAMP = "f1"
"""The half of a pair that Stratum reads."""


def info(*, stamp: str = STAMP, members: int | None = None, group: int | None = None) -> p4i.P4Info:
    """The program's P4Info, the half that Stratum reads renamed to ``stamp``, and with selectors of those sizes."""
    found = text_format.Parse((artefacts() / "tofino" / INFO).read_text(), p4i.P4Info())
    for struct in found.type_info.structs.values():
        for member in struct.members:
            if member.name == STAMP:
                member.name = stamp
    for profile in found.action_profiles:
        profile.size = members or profile.size
        profile.max_group_size = group or profile.max_group_size
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
