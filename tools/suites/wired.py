"""Runs a switch on capture files: a pipe feeds one port, the output of the other ports is read, and a controller writes
entries over P4Runtime."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from topo.testbed import captures
from topo.testbed.errors import SetupError
from topo.testbed.switches.piped import Pipes, Switch, await_quiet, start

FED = 1
"""The input port of all frames."""
PORTS = (FED, 2, 3, 4)
CPU_PORT = 255
QUIET_S = 60.0
COMES_S = 20.0
_LOOK_S = 0.05


class Wired:
    """A running switch that was started without a program."""

    def __init__(self, switch: Switch, pipes: Pipes) -> None:
        self.address = switch.address
        self._switch, self._pipes = switch, pipes
        self._time_us = 0
        self._tails: dict[int, captures.Tail] = {}

    def send(self, frames: Iterable[bytes]) -> dict[int, list[bytes]]:
        """Send frames, wait until the switch is idle, and return the output frames by port. Raises SetupError."""
        self.left()
        for frame in frames:
            self._pipes.write(FED, captures.record(frame, *divmod(self._time_us, 1_000_000)))
            self._time_us += 1
        process = self._switch.process
        if not await_quiet(process.pid, self._pipes.descriptors(), QUIET_S, process.require_running):
            raise SetupError(f"the switch is still busy after {QUIET_S:g} s:\n{process.tail()}")
        return self.left()

    def left(self) -> dict[int, list[bytes]]:
        """Return the output frames by port since the previous call of `left` or `send`."""
        for port, path in self._switch.outputs.items():
            if port not in self._tails and path.exists():
                self._tails[port] = captures.Tail(path)
        return {port: tail.more() for port, tail in self._tails.items()}


@contextmanager
def wired(binary: Path) -> Generator[Wired]:
    """Start a switch that serves P4Runtime; end the switch afterwards. Raises SetupError."""
    with tempfile.TemporaryDirectory(prefix="wired-") as temporary:
        folder = Path(temporary)
        for port in PORTS:
            if port != FED:
                (folder / f"p{port}_in.pcap").write_bytes(captures.HEADER)
        pipes = Pipes({FED: folder / f"p{FED}_in.pcap"}, captures.HEADER)
        try:
            switch = start(folder, binary, ["--no-p4"], PORTS, ["--cpu-port", str(CPU_PORT)])
            try:
                switch.await_ready()
                yield Wired(switch, pipes)
            finally:
                switch.end()
        finally:
            pipes.close()


def comes(condition: Callable[[], bool]) -> bool:
    """Wait until a condition is true; return False if it is not true within `COMES_S` seconds."""
    deadline = time.monotonic() + COMES_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True
