"""Output for users: it fits the terminal's width and encoding, and is coloured on a terminal unless NO_COLOR is set."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from sluice.views.textlayout import wrapped

_STYLES = (
    (r"(?m)^\S.*?(?=  mode )", "bold"),
    (r"\b(?:ejected|absent|does not answer|is gone|lost)\b", "red"),
    (r"\b(?:draining|drains|probe|standby|connecting)\b", "yellow"),
    (r"(?m)\b(?:in|primary|is back)\b(?=  |$)", "green"),
    (r"(?m)^ *(?:server|destination)  .*$", "dim"),
)
"""Highlighted parts of a status: a pattern, and its style."""
_SYMBOLS = {"…": "~", "–": "-", "▾": "v", "↑": "^", "↓": "v"}
"""Symbols in sluice's own texts, and replacements for encodings without them: equally wide, so that columns stay
aligned."""
_ESCAPING = "sluice-escape"


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace a character that the encoding lacks (an error handler for `codecs.register_error`)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    error.end = error.start + 1
    symbol = _SYMBOLS.get(error.object[error.start])
    return (symbol, error.end) if symbol else codecs.backslashreplace_errors(error)


codecs.register_error(_ESCAPING, _escaped)


def prepare() -> None:
    """Let standard output and error escape characters that their encoding lacks, such as non-ASCII letters in a name.

    Only Python's usual error handlers are replaced, so ``PYTHONIOENCODING=ascii:replace`` keeps its handler.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape", "backslashreplace"):
            stream.reconfigure(errors=_ESCAPING)


def writable(value: Any) -> Any:
    """Return plain data with its texts escaped as on standard output, since the layout depends on the escapes'
    widths."""
    if isinstance(value, str):
        encoding, errors = getattr(sys.stdout, "encoding", None), getattr(sys.stdout, "errors", None)
        return value.encode(encoding, errors or "strict").decode(encoding) if encoding else value
    if isinstance(value, Mapping):
        return {writable(key): writable(item) for key, item in value.items()}
    return [writable(item) for item in value] if isinstance(value, list) else value


def width() -> int | None:
    """Return the width of standard output in cells: COLUMNS, else the terminal's width; None without a terminal."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return os.get_terminal_size(sys.stdout.fileno()).columns or None if sys.stdout.isatty() else None


def styled(text: str) -> Text:
    """Return a text with its states in colours."""
    marked = Text(text, no_wrap=True, overflow="ignore")
    for pattern, style in _STYLES:
        marked.highlight_regex(pattern, style)
    return marked


def draws(console: Console) -> bool:
    """Return whether a console can overwrite its lines: it is a terminal, and not a dumb one (TERM)."""
    return console.is_terminal and not console.is_dumb_terminal


def show(text: str) -> None:
    """Print to standard output, wrapped to its width."""
    console, text = Console(highlight=False), wrapped(text, width())
    if console.is_terminal:
        console.print(styled(text), soft_wrap=True)
    else:
        print(text)
