"""The token that authorises changes on the page. It is stored in a file that only its owner can read."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import stat
from pathlib import Path

from sluice.loops.commands import Refused

_LEAST = 16
"""The smallest length of a token, in characters."""
_PAUSE_S = 1.0
"""Seconds by which the answer to a wrong token is delayed. During the delay no token is checked, so guessing takes a
long time."""


def token_of(path: str) -> str:
    """Read the token; if the file is missing, create it with a new token.

    Raises OSError, and Refused if the token is too short or the file's mode gives other users any access.
    """
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
    """Checks the tokens that viewers enter against the token in a file, which is read once, at the start."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._token = token_of(path)
        self._turn = asyncio.Lock()

    async def check(self, token: str) -> None:
        """Check a token. Raises Refused if it is wrong, and for every token while the answer to a wrong one is
        delayed."""
        if self._turn.locked():
            raise Refused("a wrong token was entered just now; try again in a second")
        if hmac.compare_digest(token.strip().encode("utf-8", "surrogatepass"), self._token.encode()):
            return
        async with self._turn:
            await asyncio.sleep(_PAUSE_S)
        raise Refused(f"wrong token; the right one is in {self._path} on the controller's machine")
