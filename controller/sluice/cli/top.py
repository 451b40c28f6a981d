"""``sluice top``: shows the servers of a running controller in a terminal, controlled by keys."""

from __future__ import annotations

import argparse
import os
import re
import select
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from sluice.config.load import load
from sluice.loops import controlclient
from sluice.loops.commands import Refused
from sluice.page import view
from sluice.page.rates import Rates, Sample

from . import terminal, topview
from .topview import Choice

_PERIOD_S = 2.0
_KEY = re.compile(r"\x1b\[.|.", re.DOTALL)
"""The pattern of one key (an arrow key or a single character); a key that is held down sends several at once."""
_SPARE = 1
"""The number of empty lines at the bottom: a newline after the terminal's last line would scroll the screen."""


def add(commands: Any, config_option: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the command to the parser."""
    top = commands.add_parser("top", help="the servers, live, in a terminal; keys sort, drain and show details")
    config_option(top)
    top.add_argument("--socket", metavar="PATH", help="control socket; default: the one the configuration names")
    top.set_defaults(run=_top)


def _top(options: argparse.Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("top needs a terminal; without one use `sluice status --watch`")
    console = Console(highlight=False)
    if not terminal.draws(console):
        raise Refused("top needs a terminal that it can draw on, not TERM=dumb; use `sluice status --watch`")
    path = options.socket or load(options.config).control
    screen = _Screen(path, console)
    with _keys() as key, Live(screen.show(), console=console, screen=True, auto_refresh=False) as live:
        due = time.monotonic() + _PERIOD_S
        while (pressed := key(due - time.monotonic())) != "q":
            if pressed:
                screen.press(pressed)
            else:
                screen.read()
                due = time.monotonic() + _PERIOD_S
            live.update(screen.show(), refresh=True)
    return 0


class _Screen:
    """The screen's content, and the status that it shows."""

    def __init__(self, path: str, console: Console) -> None:
        self._path, self._console = path, console
        self._choice = Choice()
        self._sample = Sample(time.time(), controlclient.ask(path, {"command": "status"}))
        self._rates, self._rated = Rates(self._sample, None), self._sample
        self._error = ""

    def read(self) -> None:
        """Read the status at the end of a period. Rates are computed only here, so that they cover complete periods."""
        if self._ask():
            self._rates, self._rated = Rates(self._sample, self._rated), self._sample

    def _ask(self) -> bool:
        """Read the status. Returns whether the controller answered; otherwise the old status remains."""
        try:
            self._sample = Sample(time.time(), controlclient.ask(self._path, {"command": "status"}))
        except Refused as error:
            self._error = str(error)
            return False
        self._error = ""
        return True

    def press(self, key: str) -> None:
        """Process a key that the user has pressed."""
        self._choice, request = topview.pressed(self._choice, key)
        if request is not None:
            try:
                reply = str(controlclient.ask(self._path, request))
            except Refused as error:
                reply = str(error)
            self._choice = replace(self._choice, reply=reply)
            self._ask()

    def show(self) -> RenderableType:
        """Return the content of the screen."""
        self._choice, rows = topview.ordered(self._choice, self._sample, self._rates)
        chosen = rows[self._choice.at] if rows else None
        top_lines = [
            _line(view.head(self._sample.status)),
            _line(self._error or "; ".join(view.out(self._sample.status)), "red" if self._error else "yellow"),
        ]
        bottom_lines = [
            _text(topview.details(chosen).plain if self._choice.details and chosen else ""),
            _text(self._choice.reply),
            _text(f"chosen: {topview.named(chosen)}" if chosen else ""),
            _text(topview.KEYS, "dim"),
        ]
        size = self._console.size

        def screen(height: int) -> RenderableType:
            table = topview.table(self._choice, rows, self._rates, height, size.width, writable=terminal.writable)
            return Group(*top_lines, table, *bottom_lines)

        other_lines = len(self._console.render_lines(screen(0)))
        return screen(max(1, size.height - other_lines - _SPARE))


def _text(text: str, style: str = "") -> Text:
    return Text(terminal.writable(text), style)


def _line(text: str, style: str = "") -> Text:
    return Text(terminal.writable(text), style, no_wrap=True, overflow="ellipsis")


@contextmanager
def _keys() -> Generator[Callable[[float], str]]:
    """Yield a function that reads a key from the terminal, or returns "" if no key arrives within the given seconds."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    waiting: deque[str] = deque()

    def key(patience_s: float) -> str:
        if waiting:
            return waiting.popleft()
        if not select.select([keyboard], [], [], max(0.0, patience_s))[0]:
            return ""
        sent = os.read(keyboard, 256).decode(errors="replace")
        waiting.extend(_KEY.findall(sent) or ["q"])  # "q" at end of input: the terminal is closed
        return waiting.popleft()

    try:
        tty.setcbreak(keyboard)
        yield key
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
