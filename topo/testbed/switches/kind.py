"""A kind of switch: where its program is, and the command line that starts it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sluice.names import CPU_PORT

from topo.testbed.namespaces import listening
from topo.testbed.processes import Process


@dataclass(frozen=True)
class Endpoints:
    """Where a started switch is reached."""

    grpc: str
    """P4Runtime's address, as gRPC writes it."""
    folder: Path
    """For its sockets."""
    thrift_port: int = 9090
    """Of a switch that has Thrift."""


@dataclass(frozen=True)
class Kind:
    """What is needed to start a switch."""

    name: str
    """As in $SWITCH."""
    program: str
    find: Callable[[], Path]
    """The program's path. Raises SetupError."""
    options: Callable[[Endpoints], Sequence[str]] = lambda _: ()
    """Those that no other kind has."""
    verbose: Sequence[str] = ()
    """Options that make the switch log what it does on its output."""
    folder: str = ""
    """Where among the compiled programs (p4src/build) its own are."""
    thrift: bool = False
    """Whether registers are reached over Thrift."""

    def command(
        self,
        binary: Path,
        ports: Mapping[int, str],
        endpoints: Endpoints,
        *,
        program: Sequence[str] = ("--no-p4",),
        device_id: int = 1,
        target: Sequence[str] = ("--cpu-port", str(CPU_PORT)),
    ) -> list[str]:
        """The command line.

        ``ports``: interface by number. ``program``: how the command line names the P4 program. ``target``: options of
        the target, behind ``--``.
        """
        words = [str(binary), *program, "--device-id", str(device_id), *self.options(endpoints)]
        for number, interface in sorted(ports.items()):
            words += ["-i", f"{number}@{interface}"]
        return [*words, "--", "--grpc-server-addr", endpoints.grpc, *target]

    @contextmanager
    def around(
        self, ports: Mapping[int, str], endpoints: Endpoints, pipeline: Path, namespace_pid: int | None = None
    ) -> Generator[None]:
        """Run what the switch's program needs beside it; most kinds need nothing. Raises SetupError.

        ``ports``: interface by number. ``pipeline``: the folder of the compiled P4 program. ``namespace_pid``: a
        process in the network namespace of the interfaces; None: they are in ours.
        """
        del ports, endpoints, pipeline, namespace_pid
        yield

    def await_serving(self, process: Process, endpoints: Endpoints, timeout_s: float) -> None:
        """Return once its servers listen. Raises SetupError."""
        wanted = [endpoints.grpc, *([f"127.0.0.1:{endpoints.thrift_port}"] if self.thrift else [])]
        process.await_true("serving", lambda: all(listening(process.pid, place) for place in wanted), timeout_s)
