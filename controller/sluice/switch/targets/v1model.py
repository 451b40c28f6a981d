"""What the targets of v1model have in common: everything is taken as it is said."""

from __future__ import annotations

from pathlib import Path

from finsy import P4Schema

from sluice.config.model import Config
from sluice.switch.bucket import Bucket

from .profile import lacks

CODE = "sluice.json"


def code(folder: Path) -> bytes:
    """BMv2 JSON."""
    return (folder / CODE).read_bytes()


def bucket(wanted: Bucket) -> Bucket:
    """Unchanged: rates are whole packets a second."""
    return wanted


def objection(config: Config, schema: P4Schema) -> str | None:
    """See Profile."""
    return lacks(config, schema)
