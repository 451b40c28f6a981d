"""What all v1model targets have in common: they represent every configured value exactly."""

from __future__ import annotations

from pathlib import Path

from finsy import P4Schema

from sluice.config.model import Config
from sluice.switch.bucket import Bucket

from .profile import lacks

CODE = "sluice.json"


def code(folder: Path) -> bytes:
    """Return the compiled program, BMv2 JSON."""
    return (folder / CODE).read_bytes()


def bucket(wanted: Bucket) -> Bucket:
    """Return the bucket unchanged: BMv2 and the embedded switch represent every whole number of packets a second."""
    return wanted


def objection(config: Config, schema: P4Schema) -> str | None:
    """Return why the target cannot run a configuration with a program; None if it can."""
    return lacks(config, schema)
