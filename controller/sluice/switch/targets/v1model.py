"""What the targets of v1model have in common: everything is taken as it is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from finsy import P4Schema
from finsy.proto import p4r

from sluice.config import Config
from sluice.switch.bucket import Bucket

from .profile import lacks

CODE = "sluice.json"


def code(folder: Path) -> bytes:
    """BMv2 JSON."""
    return (folder / CODE).read_bytes()


def entry(wanted: p4r.TableEntry) -> p4r.TableEntry:
    """Unchanged."""
    return wanted


def weights_of(_schema: P4Schema, _table: int, _groups: int, weights: Sequence[int]) -> list[int]:
    """Unchanged."""
    return list(weights)


def bucket(wanted: Bucket) -> Bucket:
    """Unchanged: rates are whole packets a second."""
    return wanted


def objection(config: Config, schema: P4Schema) -> str | None:
    """See Profile."""
    return lacks(config, schema)
