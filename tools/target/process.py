"""The process of a switch: started with files in place of interfaces, awaited, ended whatever happens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import SetupError
from testbed.ports import free_port
from testbed.processes import Process
from testbed.switches import BMV2, EMBEDDED, Endpoints, Kind

ROOT = Path(__file__).resolve().parents[2]

READY_S = 60.0
"""A switch that serves nothing by then has failed."""
END_S = 20.0
"""A switch that has not ended by then after SIGTERM is killed."""


def embedded_binary(given: Path | None = None) -> Path:
    """The embedded switch, built, or the one given. Raises SetupError."""
    if given is None:
        return EMBEDDED.find()
    if not given.is_file():
        raise SetupError(f"{given} is not there; build it: cargo build --release --manifest-path switch/Cargo.toml")
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
    # gRPC takes a Unix socket on both, which collides with nobody; a path is bounded to 107 bytes.
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
