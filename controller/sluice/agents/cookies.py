"""The keys of SYN cookies, the same for all agents, so that each accepts handshakes that another agent began.

A file beside the control socket preserves the keys when the controller restarts: clients that have received a SYN-ACK
may send their ACK only later.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from sluice.atomicfile import write_atomically
from sluice.log import logger

_log = logger("agents")

KEY_BYTES = 16
LIFE_S = 86_400.0
"""Seconds until a new key replaces the current one. The former key is still accepted."""


@dataclass(frozen=True, slots=True)
class Cookies:
    """The current and the former key, and the time at which the current one was created (Unix time)."""

    key: bytes
    former: bytes
    since_s: float

    @classmethod
    def fresh(cls, former: bytes = b"") -> Cookies:
        """Return a new random current key together with the ``former`` key."""
        return cls(secrets.token_bytes(KEY_BYTES), former, time.time())

    def due(self, now_s: float) -> Cookies:
        """Return the keys that are in force at ``now_s`` (Unix time): these, or a new current key if the current one is
        older than LIFE_S or was created after ``now_s`` (the clock was set back)."""
        return self if 0 <= now_s - self.since_s < LIFE_S else Cookies.fresh(self.key)


def load(path: Path) -> Cookies:
    """Load the keys that an earlier controller saved. Returns new keys if there is no valid file."""
    try:
        content = json.loads(path.read_text())
        cookies = Cookies(bytes.fromhex(content["key"]), bytes.fromhex(content["former"]), float(content["since_s"]))
        if len(cookies.key) != KEY_BYTES or len(cookies.former) not in (0, KEY_BYTES):
            raise ValueError("a key of another length")
    except FileNotFoundError:
        return Cookies.fresh()
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("cookie keys begin anew", extra={"file": str(path), "error": str(error)})
        return Cookies.fresh()
    return cookies


def save(path: Path, cookies: Cookies) -> None:
    """Save the keys in a file that only its owner can read. If saving fails, the keys are lost at the next restart."""
    content = {"key": cookies.key.hex(), "former": cookies.former.hex(), "since_s": cookies.since_s}
    try:
        write_atomically(path, json.dumps(content))
    except OSError as error:
        _log.warning("cookie keys are not kept", extra={"file": str(path), "error": str(error)})
