"""Mininet nodes of the labs: hosts without offloads, switches of each kind, and the kernel as a router.

Each switch runs in a separate network namespace with the switch's ends of all links. The port of P4Runtime on the
namespace's loopback interface is therefore always free. A switch starts without a P4 program, except for Tofino's
model: it starts with the program that the controller will push.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sluice.switch.pipeline import artefacts

from topo.plan.network import GRPC_PORT, THRIFT_PORT, HostPlan
from topo.testbed.errors import SetupError
from topo.testbed.mininet import Node, Switch
from topo.testbed.namespaces import listening
from topo.testbed.processes import Process, before_all_else, run_in
from topo.testbed.switches import BMV2, EMBEDDED, TOFINO, Endpoints, Kind
from topo.testbed.switches.bmv2 import deepen_queues

READY_TIMEOUT_S = 30.0
KERNEL = "kernel"
"""The kind of switch that a run names if the kernel routes in place of a switch."""
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro")
"""Offloads by which the kernel delegates checksums and segmentation to a network device. They are disabled, because the
switch's interfaces have no such device."""
SYN_RETRIES, SYN_LINEAR_TIMEOUTS = "net.ipv4.tcp_syn_retries", "net.ipv4.tcp_syn_linear_timeouts"


def turn_offloads_off(pid: int, interface: str) -> None:
    """Disable an interface's offloads in the namespace of process `pid`, so that packets arrive with complete checksums
    and segmentation."""
    run_in(pid, ["ethtool", "-K", interface, *(word for offload in OFFLOADS for word in (offload, "off"))])


# -- hosts


def congestion_control() -> str:
    """Return the TCP congestion control of the lab's hosts: CUBIC, or Reno if namespaces may not select CUBIC.

    A namespace may only select among the algorithms that the initial namespace allows.
    """
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return "cubic" if "cubic" in allowed else "reno"


def syn_sysctls(pid: int) -> tuple[int, int]:
    """Return tcp_syn_retries and tcp_syn_linear_timeouts in the namespace of process `pid`; the settings belong to the
    namespace.

    Kernels before 6.5 have no tcp_syn_linear_timeouts; the result is then 0.
    """
    text = run_in(pid, ["sysctl", "-e", SYN_RETRIES, SYN_LINEAR_TIMEOUTS])
    settings = dict(line.split(" = ") for line in text.splitlines())
    return int(settings[SYN_RETRIES]), int(settings.get(SYN_LINEAR_TIMEOUTS, 0))


def syn_retransmission(pid: int) -> str:
    """Return a description of the times at which a host retransmits SYNs, which determine how long a
    lost SYN delays a connection.

    Kernels from 6.5 on send the first retransmissions at constant intervals (tcp_syn_linear_timeouts); earlier kernels
    double every interval.
    """
    _, steady = syn_sysctls(pid)
    return f"SYNs retransmitted after 1 s, {f'{steady} times steadily, then doubling' if steady else 'doubling'}"


class LabHost(Node):
    """A host with one interface; offloads and IPv6 are disabled before the host's first connection."""

    def config(self, **params: object) -> dict[str, object]:
        """Select the congestion control, disable offloads and IPv6, then configure address and route by Mininet's
        method."""
        settings = {
            "net.ipv6.conf.all.disable_ipv6": "1",
            "net.ipv6.conf.default.disable_ipv6": "1",
            "net.ipv4.tcp_congestion_control": congestion_control(),
        }
        run_in(self.pid, ["sysctl", "-q", "-w", *(f"{name}={value}" for name, value in settings.items())])
        for interface in self.intfs.values():
            turn_offloads_off(self.pid, interface.name)
        return super().config(**params)


# -- switches


class ProcessSwitch(Switch):
    """A Mininet switch that consists of one process; the subclass defines the program."""

    program = ""
    thrift = False
    """Whether the controller reads and writes the switch's registers over Thrift."""
    load_share = 1.0
    """Connections per second that labs offer through this switch, as a share of their usual rate."""
    server_share = 1.0
    """CPUs of the servers behind this switch, as a share of their usual number."""
    size_share = 1.0
    """Size of the files that clients request through this switch, as a share of the usual size."""
    spared_mean_ms = 10.0
    """Largest mean connect time through this switch, in milliseconds, at which the demo accepts its rate while the
    loaded server is drained."""
    rate_margin = 1.5
    """The demo's rate, divided by the lowest of the tried rates that overload the loaded server under an equal split.
    The factor is above 1, because that lowest rate overloads the server only part of the time."""
    client_wait_ms = 0.0
    """Mean time, in milliseconds, for which a client's process waits for a processor before it notices that its
    connection is established."""
    time_share = 1.0
    """Length of the demo's phases and periods, as a multiple of the usual length."""
    r_phase_share = 1.0
    """Length of the demo's phase in which R decides, as a multiple of the length by `time_share`."""
    has_live_page = True
    """Whether the demo serves the controller's page, which reads the switch's counters once per second."""
    parted_from_servers = True
    """Whether switch and clients run only on processors that are not assigned to servers
    (`topo/testbed/cgroups.py`)."""

    def __init__(self, name: str, *, directory: Path, realtime: bool = False, **params: object) -> None:
        """Create the switch in a new namespace; `directory` receives its logs. With `realtime` the switch has real-time
        priority."""
        super().__init__(name, **{**params, "inNamespace": True, "dpid": "1"})
        self.directory = directory
        self.realtime = realtime
        self.process: Process | None = None

    def command(self, executable: str, ports: dict[int, str]) -> list[str]:
        """Return the command line that starts the switch; `ports` maps port numbers to interfaces."""
        raise NotImplementedError

    @classmethod
    def executable(cls) -> str:
        """Return the path of the program; raise SetupError with the remedy if the file does not exist."""
        raise NotImplementedError

    def start(self, controllers: list[Node]) -> None:
        """Start the switch's process, and return once it serves P4Runtime."""
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

    def start_process(self, name: str, argv: list[str], directory: Path | None = None) -> Process:
        """Start the switch's process in the switch's namespace, with the working directory `directory`. The log file
        has the name of the process."""
        self.process = Process(
            name,
            before_all_else(argv) if self.realtime else argv,
            log=self.directory / f"{name}.log",
            namespace_pid=self.pid,
            directory=directory or self.directory,
        )
        return self.process

    def prepare(self, ports: dict[int, str]) -> None:
        """Start helper programs of the switch; `ports` maps port numbers to interfaces. Most switches need no
        helpers."""

    def await_serving(self, process: Process) -> None:
        """Return once the process serves P4Runtime."""
        process.await_true("serving", lambda: listening(self.pid, GRPC_PORT), READY_TIMEOUT_S)

    def stop_process(self) -> None:
        """End the process; the interfaces stay until the network is stopped."""
        if self.process is not None:
            self.process.stop()

    def stop(self, deleteIntfs: bool = True) -> None:
        """End the process, then stop the node by Mininet's method."""
        self.stop_process()
        super().stop(deleteIntfs)


class _OfKind(ProcessSwitch):
    """A switch of a kind that packet tests and tools also start (`topo.testbed.switches`)."""

    kind: Kind

    def __init__(self, name: str, *, directory: Path, realtime: bool = False, **params: object) -> None:
        super().__init__(name, directory=directory, realtime=realtime, **params)
        self.endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", directory, THRIFT_PORT)
        self._beside = ExitStack()

    @classmethod
    def executable(cls) -> str:
        """Return the path of the program; raise SetupError with the remedy if the file does not exist."""
        return str(cls.kind.find())

    def command(self, executable: str, ports: dict[int, str]) -> list[str]:
        """Return the command line for a switch of this kind."""
        return self.kind.command(Path(executable), ports, self.endpoints)

    def prepare(self, ports: dict[int, str]) -> None:
        """Start the helper programs of this kind of switch in the switch's namespace."""
        pipeline = artefacts() / self.kind.folder
        self._beside.enter_context(self.kind.around(ports, self.endpoints, pipeline, self.pid))

    def await_serving(self, process: Process) -> None:
        """Return once the switch serves P4Runtime and its helper programs run."""
        self.kind.await_serving(process, self.endpoints, READY_TIMEOUT_S)

    def stop_process(self) -> None:
        """End the process, then its helpers."""
        super().stop_process()
        self._beside.close()


class SluiceSwitch(_OfKind):
    """The embedded switch."""

    kind, program = EMBEDDED, EMBEDDED.program


class Bmv2Switch(_OfKind):
    """A stock simple_switch_grpc from PATH, built with Thrift."""

    kind, program, thrift = BMV2, BMV2.program, BMV2.thrift
    load_share = server_share = 0.5
    """The load, and the servers' CPUs with it, are halved because BMv2 needs some 110 us of CPU per packet (measured at
    6,300 packets/s), and the lab's machine has two cores."""
    parted_from_servers = False

    def start(self, controllers: list[Node]) -> None:
        """Start the process and enlarge its egress queues."""
        super().start(controllers)
        deepen_queues(self.pid, THRIFT_PORT)


class TofinoSwitch(_OfKind):
    """Tofino's model and driver from an installation of open-p4studio, controlled through the gateway sluice-tofino."""

    kind, program = TOFINO, TOFINO.program
    load_share, size_share = 0.05, 0.01
    """Load and file sizes are small because the model forwards only some 450 packets/s. A connection for a page of one
    segment has ten packets."""
    server_share = 0.03
    """The servers have few CPUs because a page of one segment needs less CPU time than the usual page of 100 KB."""
    spared_mean_ms = 50.0
    """The value is high because the model needs 3 ms per packet; handshakes of 15 to 33 ms were measured."""
    rate_margin = 2.0
    """The demo requires that R at least halve the loaded server's ratio. At equilibrium, which R can reach within a
    phase, the server is just not overloaded: with a margin m, its ratio is then about 1/m of that of the equal split
    or less. So m is at least 2."""
    client_wait_ms = 20.0
    """The value is high because model and driver occupy two processors. In a measurement, httperf noticed connections
    15 ms later than the capture did."""
    time_share = 3.0
    """The factor by which every phase and every interval of the controller is longer. With so small a load an interval
    of usual length would have too few connections, and the driver needs a fraction of a second to read registers."""
    r_phase_share = 1.5
    """The phase is longer because so few connections make its mean vary: in two runs with the usual number of periods,
    R brought the mean connect time to 0.20 and 0.30 of the equal split's. Settling takes a third of these periods."""
    has_live_page = False
    """The driver needs seconds to read the counters that the page shows, and the controller would wait for the counts
    of its decisions. With the page, and a sample of the demo every 2 s, decisions were 9 s apart (median of one run);
    now they are 4 to 5 s apart."""
    parted_from_servers = False


SWITCHES: dict[str, type[ProcessSwitch]] = {"embedded": SluiceSwitch, "bmv2": Bmv2Switch, "tofino": TofinoSwitch}


def switch_kind() -> str:
    """Return the kind of switch that $SWITCH names; raise SetupError for an unknown kind."""
    kind = os.environ.get("SWITCH", "embedded")
    if kind not in SWITCHES:
        raise SetupError(f"SWITCH={kind} is not known; known are {', '.join(SWITCHES)}")
    return kind


# -- the kernel in the switch's place


class KernelRouter(ProcessSwitch):
    """The kernel as a router that has the gateway address of every subnet; it needs no switch process."""

    program = "the kernel"

    def around(self) -> Sequence[HostPlan]:
        """Return the hosts around the router."""
        raise NotImplementedError

    def start(self, controllers: list[Node]) -> None:
        """Assign each interface the gateway address of its subnet, and enable forwarding."""
        del controllers
        for setting in ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0"):
            run_in(self.pid, ["sysctl", "-q", "-w", setting])
        run_in(self.pid, ["ip", "link", "set", "lo", "up"])
        for host in self.around():
            interface = self.intfs[host.port].name
            run_in(self.pid, ["ip", "link", "set", interface, "address", host.gateway_mac, "up"])
            run_in(self.pid, ["ip", "address", "add", str(host.gateway), "dev", interface])
            turn_offloads_off(self.pid, interface)
