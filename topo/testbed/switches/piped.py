"""A switch with capture files in place of interfaces: starting and ending it, writing packets into it, and waiting
until it has processed all packets."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from topo.testbed.errors import SetupError
from topo.testbed.namespaces import free_port
from topo.testbed.processes import Process
from topo.testbed.switches import BMV2, EMBEDDED, Endpoints, Kind

READY_S = 60.0
"""Seconds within which a started switch must serve P4Runtime."""
END_S = 20.0
"""Seconds after SIGTERM within which a switch must end, before it is killed."""
SAMPLE_S = 0.02
SAMPLES = 3
"""Number of successive samples, SAMPLE_S seconds apart, without a context switch since the previous sample, after which
a switch is considered idle."""


def embedded_binary(given: Path | None = None) -> Path:
    """Return the path `given`, or the built embedded switch. Raises SetupError if the file does not exist."""
    if given is None:
        return EMBEDDED.find()
    if not given.is_file():
        raise SetupError(f"{given} is not there; build it: cargo build --release")
    return given.resolve()


@dataclass
class Switch:
    """A running switch with its own folder: port N reads `folder/pN_in.pcap` and writes `folder/pN_out.pcap`."""

    kind: Kind
    process: Process
    endpoints: Endpoints
    outputs: dict[int, Path] = field(default_factory=dict[int, Path])

    @property
    def address(self) -> str:
        """Address of P4Runtime."""
        return self.endpoints.grpc

    @property
    def thrift(self) -> str | None:
        """Address of Thrift; None if the switch has no Thrift."""
        return f"127.0.0.1:{self.endpoints.thrift_port}" if self.kind.thrift else None

    def await_ready(self) -> None:
        """Wait until the switch serves P4Runtime; raise SetupError if it fails to."""
        self.kind.await_serving(self.process, self.endpoints, READY_S)

    def end(self) -> None:
        """End the switch, and wait for its end."""
        self.process.stop(END_S)


def start(
    folder: Path,
    binary: Path,
    program: Sequence[str],
    ports: Sequence[int],
    flags: Sequence[str] = (),
    *,
    name: str = "the switch",
) -> Switch:
    """Start a switch whose ports are existing files (named pipes, or complete captures); return without waiting until
    it serves.

    `program`: the options that name the P4 program (`["--no-p4"]`, or a JSON file with its flags). `flags`: options of
    the target. `name`: the switch's name in error messages. The name of the binary determines whether the switch is
    BMv2. Raises SetupError if the process cannot be started.
    """
    # BMv2 and the embedded switch both accept a Unix socket for gRPC, which cannot collide with another program's port.
    # The kernel limits the socket's path to 107 bytes.
    kind = BMV2 if binary.name.startswith("simple_switch") else EMBEDDED
    endpoints = Endpoints(f"unix:{folder / 'grpc'}", folder, free_port())
    words = kind.command(
        binary,
        {port: f"p{port}" for port in ports},
        endpoints,
        program=[*program, "--use-files", "0", *kind.verbose],
        device_id=0,
        target=flags,
    )
    process = Process(name, words, log=folder / "switch.log", directory=folder)
    return Switch(kind, process, endpoints, {port: folder / f"p{port}_out.pcap" for port in ports})


class Pipes:
    """Named pipes into a switch. They are also open for reading, so that opening a pipe does not wait for the
    switch."""

    def __init__(self, paths: dict[int, Path], header: bytes) -> None:
        self._ends: dict[int, int] = {}
        for port, path in paths.items():
            os.mkfifo(path)
            self._ends[port] = os.open(path, os.O_RDWR)
            os.write(self._ends[port], header)

    def write(self, port: int, data: bytes) -> None:
        """Write bytes to a port's pipe; wait while the pipe is full."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._ends[port], rest) :]

    def descriptors(self) -> list[int]:
        """Return the file descriptors of the open pipes."""
        return list(self._ends.values())

    def close(self) -> None:
        """Close all pipes, which ends the inputs of the switch."""
        while self._ends:
            os.close(self._ends.popitem()[1])


def await_quiet(pid: int, pipes: Iterable[int], timeout_s: float, watch: Callable[[], None] = lambda: None) -> bool:
    """Wait until the process has read all pipes (descriptors) and all its threads sleep; return False after the
    timeout.

    A runnable thread that waits for a processor is not asleep, so on a busy machine the wait only lasts longer.
    ``watch`` is called repeatedly during the wait, and raises if the wait cannot succeed, for example because the
    process has ended.
    """
    pipes = list(pipes)
    deadline = time.monotonic() + timeout_s
    same, before = 0, -1
    while time.monotonic() < deadline:
        used = None if any(_unread(pipe) for pipe in pipes) else _asleep(pid)
        same = same + 1 if used is not None and used == before else 0
        before = -1 if used is None else used
        if same >= SAMPLES:
            return True
        watch()
        time.sleep(SAMPLE_S)
    return False


def _unread(pipe: int) -> int:
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


def _asleep(pid: int) -> int | None:
    """Return the number of context switches of the process's threads so far; None if a thread does not sleep, or the
    process has ended."""
    switches = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
                return None
            status = (task / "status").read_text()
            switches += sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)
    except OSError:
        return None
    return switches
