"""The key of SYN cookies: one for all agents, so that each takes the others' handshakes.

It outlives the controller in a file beside the control socket: clients that were answered have until their request.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from sluice.log import logger
from sluice.wholefile import write_whole

_log = logger("agents")

KEY_BYTES = 16
LIFE_S = 86_400.0
"""Then another one takes its place; the former is still taken."""


@dataclass(frozen=True, slots=True)
class Cookies:
    """The key in force, the one before, and when it began."""

    key: bytes
    former: bytes
    since_s: float

    @classmethod
    def fresh(cls, former: bytes = b"") -> Cookies:
        """A new key."""
        return cls(secrets.token_bytes(KEY_BYTES), former, time.time())

    def due(self, now_s: float) -> Cookies:
        """The keys that are in force then."""
        return self if 0 <= now_s - self.since_s < LIFE_S else Cookies.fresh(self.key)


def load(path: Path) -> Cookies:
    """What an earlier controller left there; fresh ones where there is nothing, or nothing of use."""
    try:
        said = json.loads(path.read_text())
        cookies = Cookies(bytes.fromhex(said["key"]), bytes.fromhex(said["former"]), float(said["since_s"]))
        if len(cookies.key) != KEY_BYTES or len(cookies.former) not in (0, KEY_BYTES):
            raise ValueError("a key of another length")
    except FileNotFoundError:
        return Cookies.fresh()
    except (OSError, ValueError, KeyError, TypeError) as error:
        _log.warning("cookie keys begin anew", extra={"file": str(path), "error": str(error)})
        return Cookies.fresh()
    return cookies


def save(path: Path, cookies: Cookies) -> None:
    """For its owner alone. One that cannot be written is only lost at a restart."""
    said = {"key": cookies.key.hex(), "former": cookies.former.hex(), "since_s": cookies.since_s}
    try:
        write_whole(path, json.dumps(said))
    except OSError as error:
        _log.warning("cookie keys are not kept", extra={"file": str(path), "error": str(error)})
