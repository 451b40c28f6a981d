"""The token of those who may change something by the page: it stands in a file that only its owner reads."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import stat
from pathlib import Path

from sluice.loops.commands import Refused

_LEAST = 16
"""Characters."""
_PAUSE_S = 1.0
"""A wrong one is answered so late, and meanwhile none is looked at: guesses take long."""


def token_of(path: str) -> str:
    """Read the token; a file that is missing is made. Raises Refused for one that is too short or that others can
    read, and OSError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(24) + "\n")
    with Path(path).open(encoding="utf-8") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        token = file.read(4096).strip()
    if mode & 0o077:
        raise Refused(f"page.token_file: {path} can be read by others (mode {mode:o}); run: chmod 600 {path}")
    if len(token) < _LEAST:
        raise Refused(f"page.token_file: {path} has a token of {len(token)} characters; give it {_LEAST} or more")
    return token


class Lock:
    """Opens by the token."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._token = token_of(path)
        self._turn = asyncio.Lock()

    async def check(self, given: str) -> None:
        """Raises Refused for a wrong token, and for any other while a wrong one waits for its answer."""
        if self._turn.locked():
            raise Refused("somebody has just given a wrong token; try again in a second")
        if hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), self._token.encode()):
            return
        async with self._turn:
            await asyncio.sleep(_PAUSE_S)
        raise Refused(f"wrong token; the right one stands in {self._path} on the controller's machine")
