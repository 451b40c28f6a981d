"""Enlarges the kernel's connection tracking table for the duration of a run."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

LIMIT = Path("/proc/sys/net/netfilter/nf_conntrack_max")
BUCKETS = Path("/sys/module/nf_conntrack/parameters/hashsize")
ROOM = {LIMIT: 4_194_304, BUCKETS: 1_048_576}


@contextmanager
def roomy_conntrack() -> Generator[None]:
    """Let the kernel track millions of connections within a ``with`` block, if the kernel permits the setting; restore
    the setting afterwards."""
    before: dict[Path, str] = {}
    try:
        for path, least in ROOM.items():
            with suppress(OSError):
                text = path.read_text()
                if int(text) < least:
                    path.write_text(str(least))
                    before[path] = text
        yield
    finally:
        for path, text in before.items():
            with suppress(OSError):
                path.write_text(text)
