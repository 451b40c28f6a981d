"""Ctrl-C, SIGTERM and SIGHUP end the lab in order: the first unwinds the stack, later ones do not disturb that."""

from __future__ import annotations

import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import FrameType

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
    """Within this, an interrupt waits: of a process that is just being started nobody has a handle yet to end it by."""
    came: list[int] = []
    handled = {number: handler for number in SIGNALS if callable(handler := signal.getsignal(number))}
    for number in handled:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in handled.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


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
