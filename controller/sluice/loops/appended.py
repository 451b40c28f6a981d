"""Text files that a controller appends to for months, such as traces of its decisions."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from sluice.log import logger

_log = logger("trace")


class Appended:
    """A text file to which whole lines are appended. ``write`` passes each line to the operating system at once.

    When log rotation has renamed the file, the next line goes to a new file at the path. A full disk does not end the
    controller: the log reports when writes begin to fail and when they succeed again. In between, a few KB of lines are
    buffered, and further lines are lost.
    """

    def __init__(self, path: str | Path) -> None:
        """Open the file at once, so that a wrong path is reported at the start. Raises OSError."""
        self._path = Path(path)
        self._fails = False
        self._open()

    def _open(self) -> None:
        self._file = self._path.open("a", encoding="utf-8", buffering=1, newline="")
        self._is_new = os.fstat(self._file.fileno()).st_size == 0

    def is_new(self) -> bool:
        """Return whether the next line will be the first of its file."""
        with suppress(OSError):
            self._follow()
        return self._is_new

    def write(self, line: str) -> None:
        """Append one line, which includes its line break."""
        try:
            self._follow()
            self._is_new = False
            self._file.write(line)
        except OSError as error:
            if not self._fails:
                _log.error("trace cannot be written", extra={"file": str(self._path), "error": str(error)})
            self._fails = True
        else:
            if self._fails:
                _log.warning("trace is written again", extra={"file": str(self._path)})
            self._fails = False

    def _follow(self) -> None:
        """Open the file at the path anew if log rotation has moved or removed the open file. Raises OSError."""
        try:
            is_same = os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            before = self._file
            self._open()
            with suppress(OSError):
                before.close()

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()
