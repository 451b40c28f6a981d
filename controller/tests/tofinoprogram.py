"""Write a substitute for the program compiled for Tofino: the program's P4Info, and small placeholder files."""

from __future__ import annotations

import json
from pathlib import Path

from sluice.switch.pipeline import INFO, artefacts


def write(folder: Path) -> Path:
    """Write P4Info, placeholder files and a sluice.conf that names them into `folder`, as p4c does; return it."""
    (folder / "pipe").mkdir(parents=True)
    (folder / INFO).write_text((artefacts() / "tofino" / INFO).read_text())
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
