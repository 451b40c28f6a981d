"""The sluice switch as Mininet switches: the embedded one, a stock `simple_switch_grpc`, and Tofino's model.

Each runs in a network namespace of its own that holds the switch ends of the links, so that P4Runtime on its
loopback interface meets no one else's port.  They start without a program, or the model with the one that the
controller will push.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from sluice.switch.pipeline import artefacts

from testbed.namespaces import listening
from testbed.processes import Process, run_in
from testbed.realtime import before_all_else
from testbed.switches import BMV2, EMBEDDED, TOFINO, Endpoints, Kind
from topo.bmv2 import deepen_queues
from topo.calibrate import SPARED_MEAN_MS
from topo.errors import LabError
from topo.hosts import turn_offloads_off
from topo.mn import Node, Switch
from workload.plan import GRPC_PORT, THRIFT_PORT

REPOSITORY = Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 30.0


class ProcessSwitch(Switch):
    """A Mininet switch that is one process; subclasses say which."""

    program = ""
    thrift = False
    """Whether the controller reaches registers over Thrift."""
    load_share = 1.0
    """How much of the lab's usual load this switch is given."""
    server_share = 1.0
    """How much of their usual CPU its servers have."""
    size_share = 1.0
    """How large the files are that are asked for through it, as a share of the lab's usual ones."""
    spared_mean_ms = SPARED_MEAN_MS
    """Mean connect time, in milliseconds, that is possible through it where no server is loaded."""
    client_wait_ms = 0.0
    """How long, on average, a client's process waits for a processor beside it before it sees that it is connected."""
    time_share = 1.0
    """How long the demo's phases and periods are, as a share of its usual ones."""
    parted_from_servers = True
    """Whether it can do with the processors that the servers leave it (`topo/cores.py`)."""

    def __init__(self, name: str, *, directory: Path, realtime: bool = False, **params: object) -> None:
        """Keep logs in `directory`; the namespace is the switch's own.  With `realtime` it runs before all else."""
        super().__init__(name, **{**params, "inNamespace": True, "dpid": "1"})
        self.directory = directory
        self.realtime = realtime
        self.process: Process | None = None

    def command(self, executable: str, ports: dict[int, str]) -> list[str]:
        """Return the command line for ports given as number -> interface."""
        raise NotImplementedError

    @classmethod
    def executable(cls) -> str:
        """Return the path of the program; raise LabError with the remedy if it is not there."""
        raise NotImplementedError

    def start(self, controllers: list[Node]) -> None:
        """Start the process and return once P4Runtime is served."""
        del controllers
        ports = {number: interface.name for number, interface in self.intfs.items() if interface.name != "lo"}
        off = ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
        run_in(self.pid, ["sysctl", "-q", "-w", *off])
        for interface in ("lo", *ports.values()):
            run_in(self.pid, ["ip", "link", "set", interface, "up"])
        for interface in ports.values():
            turn_offloads_off(self.pid, interface)
        self.prepare(ports)
        self.await_serving(self.start_process(self.program, self.command(self.executable(), ports)))

    def start_process(self, name: str, argv: list[str]) -> Process:
        """Start the one process, in the switch's namespace; its log is named after it."""
        self.process = Process(
            name,
            before_all_else(argv) if self.realtime else argv,
            log=self.directory / f"{name}.log",
            namespace_pid=self.pid,
            directory=self.directory,
        )
        return self.process

    def prepare(self, ports: dict[int, str]) -> None:
        """Start what the process needs beside it, with the ports given as number -> interface; most need nothing."""

    def await_serving(self, process: Process) -> None:
        """Return once P4Runtime is served."""
        process.await_true("serving", lambda: listening(self.pid, GRPC_PORT), READY_TIMEOUT_S)

    def stop_process(self) -> None:
        """End the process; the interfaces stay until the network is stopped."""
        if self.process is not None:
            self.process.stop()

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the process, then do as Mininet does."""
        self.stop_process()
        super().stop(deleteIntfs)


class _OfKind(ProcessSwitch):
    """A switch of one of the kinds that packet tests and tools start, too."""

    kind: Kind

    def __init__(self, name: str, *, directory: Path, realtime: bool = False, **params: object) -> None:
        super().__init__(name, directory=directory, realtime=realtime, **params)
        self._beside = ExitStack()

    @property
    def endpoints(self) -> Endpoints:
        """Where it serves."""
        return Endpoints(f"127.0.0.1:{GRPC_PORT}", self.directory, THRIFT_PORT)

    @classmethod
    def executable(cls) -> str:
        """Return the path of the program; raise LabError with the remedy if it is not there."""
        return str(cls.kind.find())

    def command(self, executable: str, ports: dict[int, str]) -> list[str]:
        """Return the command line of the kind."""
        return self.kind.command(Path(executable), ports, self.endpoints)

    def prepare(self, ports: dict[int, str]) -> None:
        """Start what the kind needs beside its process, in the switch's namespace."""
        pipeline = artefacts() / self.kind.folder
        self._beside.enter_context(self.kind.around(ports, self.endpoints, pipeline, self.pid))

    def await_serving(self, process: Process) -> None:
        """Return once the kind serves all that it has to."""
        self.kind.await_serving(process, self.endpoints, READY_TIMEOUT_S)

    def stop_process(self) -> None:
        """End the process, then what ran beside it."""
        super().stop_process()
        self._beside.close()


class SluiceSwitch(_OfKind):
    """The embedded switch."""

    kind, program = EMBEDDED, EMBEDDED.program


class Bmv2Switch(_OfKind):
    """A stock simple_switch_grpc from PATH, built with Thrift."""

    kind, program, thrift = BMV2, BMV2.program, BMV2.thrift
    load_share = server_share = 0.5
    """It takes some 110 us of CPU for a packet (measured at 6,300 packets/s), and two cores are all there is."""
    parted_from_servers = False

    def start(self, controllers: list[Node]) -> None:
        """Start the process and deepen its queues."""
        super().start(controllers)
        deepen_queues(self.pid, THRIFT_PORT)


class TofinoSwitch(_OfKind):
    """Tofino's model and driver, of an installation of open-p4studio, behind sluice-tofino."""

    kind, program = TOFINO, TOFINO.program
    load_share, size_share = 0.1, 0.01
    """The model carries some 450 packets/s. A connection for a page of one segment has ten."""
    server_share = 0.06
    """A page of one segment takes them less CPU than the usual one of 100 KB."""
    spared_mean_ms = 50.0
    """A packet takes the model 3 ms; handshakes of 15 to 33 ms were seen."""
    client_wait_ms = 20.0
    """Model and driver keep two processors busy: httperf saw connections 15 ms after the capture, in both phases."""
    time_share = 2.5
    """A period has fewer connections, and reading registers takes the driver a part of a second."""
    parted_from_servers = False


SWITCHES: dict[str, type[ProcessSwitch]] = {"embedded": SluiceSwitch, "bmv2": Bmv2Switch, "tofino": TofinoSwitch}


def switch_kind() -> str:
    """Return which switch $SWITCH asks for; raise LabError for an unknown one."""
    kind = os.environ.get("SWITCH", "embedded")
    if kind not in SWITCHES:
        raise LabError(f"SWITCH={kind} is not known; known are {', '.join(SWITCHES)}")
    return kind
