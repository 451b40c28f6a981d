"""Switches that the packet tests start, of any kind of testbed.switches."""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
from sluice.names import CPU_PORT

from testbed.switches import KINDS, Endpoints, SwitchMissing

from .netns import Cable

READY_S = 30.0
"""A switch that serves nothing by then has failed."""
END_S = 5.0
"""A switch that has not ended by then after SIGTERM is killed."""

GRPC_PORT = 9559
THRIFT_PORT = 9090
DEVICE_ID = 1
DROP_PORT = 511
PR_SET_PDEATHSIG = 1
"""prctl(2): the kernel ends the child when its parent is gone, however that went."""


class TargetError(Exception):
    """The switch cannot be started; the text says what to do."""


@dataclass(frozen=True)
class Given:
    """A switch that somebody else has started."""

    address: str
    device_id: int
    thrift: str | None


@dataclass(frozen=True)
class Running:
    """A switch that serves."""

    name: str
    address: str
    device_id: int
    thrift: str | None
    process: subprocess.Popen[bytes]


Target = Given | Running


def command(name: str, cables: list[Cable], folder: Path) -> list[str]:
    """How the switch is started. Flags mean the same on all kinds. Raises TargetError."""
    kind = KINDS[name]
    try:
        binary = kind.find()
    except SwitchMissing as missing:
        raise TargetError(str(missing)) from missing
    ports = {cable.port: cable.switch_end for cable in cables}
    endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", folder, THRIFT_PORT)
    target = ("--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT))
    return kind.command(binary, ports, endpoints, device_id=DEVICE_ID, target=target)


_libc = ctypes.CDLL(None)


def end_with_parent() -> None:
    """For a child before its program begins: not to outlive this process, even if that is killed."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextmanager
def running(name: str, cables: list[Cable], log: Path) -> Generator[Running]:
    """Start the switch, wait until it serves, and end it whatever happens. Raises TargetError."""
    words = command(name, cables, log.parent)
    with log.open("wb") as file:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads yet)
            start_new_session=True,
        )
        try:
            thrift = f"127.0.0.1:{THRIFT_PORT}" if KINDS[name].thrift else None
            switch = Running(name, f"127.0.0.1:{GRPC_PORT}", DEVICE_ID, thrift, process)
            _await(switch, log)
            yield switch
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await(switch: Running, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    with grpc.insecure_channel(switch.address) as channel:
        ready = grpc.channel_ready_future(channel)
        while True:
            try:
                ready.result(timeout=0.1)
                break
            except grpc.FutureTimeoutError:
                _check(switch, log, deadline)
    while switch.thrift:
        host, port = switch.thrift.rsplit(":", 1)
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except ConnectionRefusedError:
            _check(switch, log, deadline)


def _check(switch: Running, log: Path, deadline: float) -> None:
    if switch.process.poll() is not None or time.monotonic() > deadline:
        what = "ended at once" if switch.process.poll() is not None else f"did not serve within {READY_S:g} s"
        raise TargetError(f"the {switch.name} switch {what}; its last words:\n{tail(log)}")


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
