"""Ctrl-C, SIGTERM and SIGHUP end a command in order: the first unwinds the stack, later ones do not disturb that."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from topo.testbed.errors import SetupError, refusal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The lab was asked to end.  Not an Exception, so that nothing swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def ignore_signals() -> None:
    """Let nothing disturb what follows (the cleaning up)."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def undisturbed() -> Generator[None]:
    """Within this (a cleaning up), signals are ignored; then all is as it was."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ignore_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Generator[None]:
    """Within this, an interrupt waits: a process that is just being started has no handle yet to end it by."""
    pending: list[int] = []
    handled = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    for number in handled:
        signal.signal(number, lambda number, _frame: pending.append(number))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])


@contextmanager
def interruptible(signals: Sequence[signal.Signals] = SIGNALS) -> Generator[None]:
    """Within this, the first of `signals` raises Interrupted in the main thread; then all is as it was."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        del frame
        ignore_signals()
        raise Interrupted(number)

    before = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_command(
    name: str, work: Callable[[], int], place: Path, *, remaining: str = "", errors: tuple[type[Exception], ...] = ()
) -> int:
    """Run a command of the lab and return its exit code; what ends it is one line on standard error.

    `place` is where it writes; `remaining` states what stays there of a command that was ended. `errors` are further
    types whose text is for the user, as SetupError's is.
    """
    with interruptible():
        try:
            return work()
        except (SetupError, *errors) as error:
            text, code = str(error), 1
        except OSError as error:
            text, code = "; ".join([refusal(error, place), *([remaining] if remaining else [])]), 1
        except Interrupted as interrupted:
            ends = ", ".join(["everything it started is gone", *([remaining] if remaining else [])])
            text, code = f"ended by {interrupted}; {ends}", 128 + interrupted.number
    print(f"sluice {name}: {text}", file=sys.stderr)
    return code
