"""The description of a kind of switch: the location of its program, and the command line that starts it."""

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
    """The addresses at which a started switch is reachable."""

    grpc: str
    """Address of P4Runtime in gRPC's notation."""
    folder: Path
    """Folder for the switch's Unix sockets and files."""
    thrift_port: int = 9090
    """TCP port of Thrift, for kinds of switches with Thrift."""


@dataclass(frozen=True)
class Kind:
    """A kind of switch: the properties that are needed to start a switch of this kind."""

    name: str
    """Name of the kind, as in $SWITCH."""
    program: str
    find: Callable[[], Path]
    """Returns the program's path; raises SetupError if the program is missing."""
    options: Callable[[Endpoints], Sequence[str]] = lambda _: ()
    """Returns the options of the command line that only this kind has."""
    verbose: Sequence[str] = ()
    """Options by which the switch logs its actions to its output."""
    folder: str = ""
    """Folder with the P4 programs compiled for this kind, below p4src/build."""
    thrift: bool = False
    """Whether clients read and write registers over Thrift."""

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
        """Return the command line that starts a switch.

        ``ports``: interface by port number. ``program``: options that name the P4 program. ``target``: options of the
        target, which follow ``--``.
        """
        words = [str(binary), *program, "--device-id", str(device_id), *self.options(endpoints)]
        for number, interface in sorted(ports.items()):
            words += ["-i", f"{number}@{interface}"]
        return [*words, "--", "--grpc-server-addr", endpoints.grpc, *target]

    @contextmanager
    def around(
        self, ports: Mapping[int, str], endpoints: Endpoints, pipeline: Path, namespace_pid: int | None = None
    ) -> Generator[None]:
        """Run the helper programs of a switch while the context is active; most kinds have none. Raises SetupError if a
        helper does not start.

        ``ports``: interface by port number. ``pipeline``: the folder of the compiled P4 program. ``namespace_pid``: a
        process in the network namespace of the interfaces; None: the namespace of this process.
        """
        del ports, endpoints, pipeline, namespace_pid
        yield

    def await_serving(self, process: Process, endpoints: Endpoints, timeout_s: float) -> None:
        """Return once the switch's servers listen; raise SetupError after ``timeout_s`` seconds."""
        wanted = [endpoints.grpc, *([f"127.0.0.1:{endpoints.thrift_port}"] if self.thrift else [])]
        process.await_true("serving", lambda: all(listening(process.pid, place) for place in wanted), timeout_s)
