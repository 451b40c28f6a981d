"""The process of a switch: started with files in place of interfaces, awaited, ended whatever happens."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from testbed.switches import BMV2, EMBEDDED, Endpoints, Kind, SwitchMissing

ROOT = Path(__file__).resolve().parents[2]

READY_S = 60.0
"""A switch that serves nothing by then has failed."""
END_S = 20.0
"""A switch that has not ended by then after SIGTERM is killed."""
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""The kernel ends the child when its parent is gone, however that went."""


class SwitchError(Exception):
    """The switch cannot be started, or has died; the text says what to do."""


def embedded_binary(given: Path | None = None) -> Path:
    """The embedded switch, built, or the one given. Raises SwitchError."""
    if given is None:
        return _found(EMBEDDED)
    if not given.is_file():
        raise SwitchError(f"{given} is not there; build it: cargo build --release --manifest-path switch/Cargo.toml")
    return given.resolve()


def bmv2_binary() -> Path:
    """BMv2's P4Runtime switch. Raises SwitchError where it is not on PATH."""
    return _found(BMV2)


def _found(kind: Kind) -> Path:
    try:
        return kind.find()
    except SwitchMissing as missing:
        raise SwitchError(str(missing)) from missing


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Switch:
    """A running switch in a folder of its own: port N reads `folder/pN_in.pcap` and writes `folder/pN_out.pcap`."""

    folder: Path
    process: subprocess.Popen[bytes]
    address: str
    thrift: str | None
    log: Path
    outputs: dict[int, Path] = field(default_factory=dict[int, Path])

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def check(self) -> None:
        """Raise SwitchError when it has died."""
        if self.process.poll() is not None:
            raise SwitchError(f"the switch died with status {self.process.returncode}; its last words:\n{self.tail()}")

    def end(self) -> int:
        """Ask it to end, wait, and return its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def start(
    folder: Path, binary: Path, program: Sequence[str], ports: Sequence[int], flags: Sequence[str] = ()
) -> Switch:
    """Start a switch whose ports are files that are there already (named pipes, or whole captures).

    `program` is how the command line names the program (`["--no-p4"]`, or a JSON file with its flags), `flags` are
    those of the target. Returns when the process has begun; `await_ready` waits until it serves. BMv2 is known by
    the name of its binary. Raises SwitchError.
    """
    # gRPC takes a Unix socket on both, which collides with nobody; a path is bounded to 107 bytes.
    address = f"unix:{folder / 'grpc'}"
    kind = BMV2 if binary.name.startswith("simple_switch") else EMBEDDED
    endpoints = Endpoints(address, folder, _free_port())
    words = kind.command(
        binary,
        {port: f"p{port}" for port in ports},
        endpoints,
        program=[*program, "--use-files", "0", *kind.verbose],
        device_id=0,
        target=flags,
    )
    log = folder / "switch.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*WITH_PARENT, *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    outputs = {port: folder / f"p{port}_out.pcap" for port in ports}
    thrift = f"127.0.0.1:{endpoints.thrift_port}" if kind.thrift else None
    return Switch(folder, process, address, thrift, log, outputs)


def await_ready(switch: Switch) -> None:
    """Wait until P4Runtime answers. Raises SwitchError."""
    deadline = time.monotonic() + READY_S
    # gRPC waits a second after a failed attempt: none is made before there is a socket.
    while not (switch.folder / "grpc").exists() and time.monotonic() < deadline:
        switch.check()
        time.sleep(0.01)
    with grpc.insecure_channel(switch.address) as channel:
        ready = grpc.channel_ready_future(channel)
        while True:
            try:
                ready.result(timeout=0.05)
                return
            except grpc.FutureTimeoutError:
                switch.check()
                if time.monotonic() > deadline:
                    raise SwitchError(f"the switch serves nothing after {READY_S:g} s:\n{switch.tail()}") from None


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
