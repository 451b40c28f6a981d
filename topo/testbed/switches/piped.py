"""A switch with files in place of interfaces: started, fed, awaited until it has processed everything, ended."""

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
"""A switch that serves nothing by then has failed."""
END_S = 20.0
"""A switch that has not ended by then after SIGTERM is killed."""
SAMPLE_S = 0.02
SAMPLES = 3
"""A switch is idle when so many samples in a row are equal."""


def embedded_binary(given: Path | None = None) -> Path:
    """The embedded switch, built, or the one given. Raises SetupError."""
    if given is None:
        return EMBEDDED.find()
    if not given.is_file():
        raise SetupError(f"{given} is not there; build it: cargo build --release")
    return given.resolve()


@dataclass
class Switch:
    """A running switch in a folder of its own: port N reads `folder/pN_in.pcap` and writes `folder/pN_out.pcap`."""

    kind: Kind
    process: Process
    endpoints: Endpoints
    outputs: dict[int, Path] = field(default_factory=dict[int, Path])

    @property
    def address(self) -> str:
        """Of P4Runtime."""
        return self.endpoints.grpc

    @property
    def thrift(self) -> str | None:
        """Address of a switch that has Thrift."""
        return f"127.0.0.1:{self.endpoints.thrift_port}" if self.kind.thrift else None

    def await_ready(self) -> None:
        """Wait until it serves. Raises SetupError."""
        self.kind.await_serving(self.process, self.endpoints, READY_S)

    def end(self) -> None:
        """Ask it to end, and wait."""
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
    """Start a switch whose ports are files that are there already (named pipes, or whole captures).

    `program` is how the command line names the program (`["--no-p4"]`, or a JSON file with its flags), `flags` are
    those of the target, `name` is its name in errors. Returns when the process has begun; BMv2 is known by the name of
    its binary. Raises SetupError.
    """
    # gRPC takes a Unix socket on both, which collides with no other program's; a path is bounded to 107 bytes.
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
    """Named pipes into a switch. Held open for reading as well, so that neither side waits for the other to open."""

    def __init__(self, paths: dict[int, Path], header: bytes) -> None:
        self._ends: dict[int, int] = {}
        for port, path in paths.items():
            os.mkfifo(path)
            self._ends[port] = os.open(path, os.O_RDWR)
            os.write(self._ends[port], header)

    def write(self, port: int, data: bytes) -> None:
        """Give the switch bytes; waits while the pipe is full."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._ends[port], rest) :]

    def descriptors(self) -> list[int]:
        """Of the pipes that are open."""
        return list(self._ends.values())

    def close(self) -> None:
        """End all inputs."""
        while self._ends:
            os.close(self._ends.popitem()[1])


def await_quiet(pid: int, pipes: Iterable[int], timeout_s: float, watch: Callable[[], None] = lambda: None) -> bool:
    """Wait until the process has read all pipes (descriptors) and every thread of it sleeps; False after the timeout.

    A thread that is to run but does not get the processor is not asleep, so a busy machine only makes it longer.
    ``watch`` is called meanwhile, and raises where the wait is in vain: a process that has ended never sleeps.
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
    """How often the process's threads have been given the processor; None while a thread waits for it."""
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
