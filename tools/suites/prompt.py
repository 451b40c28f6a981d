"""Drives the prompt of Mininet that an exercise's `make run` opens, and runs commands on Mininet's hosts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from .errors import UnmetError, expect
from .place import Place, Program

PROMPT = "mininet> "
START_S = 180.0
"""The longest time in seconds until the prompt appears; `make run` compiles the program first."""
COMMAND_S = 120.0
LISTENING_S = 120.0
_TRY_S = 3.0
_TRIES = 8
_LOOK_S = 0.1


class Mininet:
    """A running exercise. Every command raises SuiteError if Mininet has ended or exceeds the command's time limit."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._program, self._folder = program, folder
        self.say("", START_S)

    def say(self, line: str, within_s: float = COMMAND_S) -> str:
        """Type a line; return the output until the next prompt."""
        if line:
            self._program.say(line)
        return self._program.until(PROMPT, within_s)

    def log(self, name: str) -> str:
        """Return the current content of a file in the exercise's folder; "" if there is no such file."""
        try:
            return (self._folder / name).read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def comes(self, condition: Callable[[], bool], within_s: float) -> bool:
        """Wait for a condition; return False if it is not true within `within_s` seconds."""
        deadline = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
        return True

    def receive(self, host: str, script: str = "./receive.py") -> str:
        """Start a host's receiver in the background; return the name of its log file."""
        log = f"{host}.log"
        self.say(f"{host} {script} > {log} 2>&1 &")
        listening = self.comes(lambda: "sniffing on" in self.log(log), LISTENING_S)
        expect(listening, f"{host}'s receiver does not start:\n{self.log(log)}")
        return log

    def deliver(self, sending: str, log: str, wanted: Callable[[str], bool], what: str) -> None:
        """Repeat the command `sending` until the log has a wanted packet. Raises UnmetError after 8 attempts.

        A single attempt may be lost, since the receiver reports too early that it listens.
        """
        said = ""
        for _ in range(_TRIES):
            said = self.say(sending)
            if self.comes(lambda: any(map(wanted, packets(self.log(log)))), _TRY_S):
                return
        raise UnmetError(f"{what} does not come after {_TRIES} times `{sending}`, which said:\n{said}")


@contextmanager
def mininet(place: Place, folder: Path) -> Generator[Mininet]:
    """Run an exercise's `make run`; afterwards end it and all its processes."""
    program = Program(place.environment, ["make", "run"], folder)
    try:
        yield Mininet(program, folder)
    finally:
        program.end()


def packets(log: str) -> list[str]:
    """Return the text that a receiver has printed for each packet."""
    return log.split("got a packet")[1:]


def fields(packet: str, name: str) -> list[str]:
    """Return the values of all header fields with that name in a packet's text."""
    return re.findall(rf"^[\s|]*{name}\s*= (.*)$", packet, re.MULTILINE)
