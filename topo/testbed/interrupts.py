"""Orderly end of a command by Ctrl-C, SIGTERM or SIGHUP: the first signal raises an exception, and later signals are
ignored while the command cleans up."""

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
    """Raised in the main thread by the first signal. The class is no Exception, so that no handler of Exception catches
    it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def ignore_signals() -> None:
    """Ignore all of SIGNALS from now on, during the cleanup."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def undisturbed() -> Generator[None]:
    """Ignore SIGNALS within the context (a cleanup); afterwards restore the earlier handlers."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    ignore_signals()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back() -> Generator[None]:
    """Delay signals until the context ends. The context surrounds the start of a process, because the process cannot be
    ended before its handle exists."""
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
    """Within the context, the signal of `signals` that arrives first raises Interrupted in the main thread; later ones
    are ignored. Afterwards restore the earlier handlers."""

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
    """Run a command of the lab and return its exit code. An error that ends the command is printed as one line on
    standard error.

    `place`: directory to which the command writes; `remaining`: text on the files that an interrupted or failed
    command leaves there. `errors`: exception types besides SetupError whose text is printed for the user.
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
