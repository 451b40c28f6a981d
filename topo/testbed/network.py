"""Networks of labs, built in order and taken down in reverse order: networks with Mininet, and networks of namespaces
around an embedded switch."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from topo.load.delay import Delay
from topo.load.program import Program, command
from topo.plan.network import GRPC_PORT, HostPlan
from topo.testbed import REPOSITORY, cgroups
from topo.testbed.controller import SluiceRun
from topo.testbed.interrupts import held_back, undisturbed
from topo.testbed.mininet import Mininet, Node, setLogLevel
from topo.testbed.namespaces import OFFLOADS, listening
from topo.testbed.nodes import SWITCHES, LabHost, ProcessSwitch
from topo.testbed.prerequisites import require_prerequisites
from topo.testbed.processes import Process, await_true, before_all_else, run_in
from topo.testbed.switches import EMBEDDED, Endpoints

SWITCH = "sw1"
"""The switch's name among the hosts."""
READY_S = 30.0
DELAY_DEVICE, DELAY_TABLE, DELAY_QUEUE = "delay0", "100", "20000"
"""A delay line's TUN device, the routing table that sends packets to the device, and the device's queue length in
packets."""


class Network:
    """A network as a context manager. On entry `build`, defined by a subclass, starts the lab's parts in order; on exit
    the parts are stopped in reverse order."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.controllers: list[SluiceRun] = []
        """The controllers that were started; a lab starts at most one."""
        self._pids: dict[str, int] = {}
        self._servers: list[Process] = []
        self._started = 0

    def build(self) -> None:
        """Start all parts of the lab. Callbacks registered by `at_end` run at the lab's end, and also if this method
        raises."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self._prepare()
            self.build()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _prepare(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix=f"{cgroups.PREFIX}{os.getpid()}-"))
        self.at_end(lambda: shutil.rmtree(self.directory, ignore_errors=True))
        self.directory.chmod(0o755)  # web servers' workers, which do not run as root, read files there

    def _close(self) -> None:
        with undisturbed():
            self.stack.close()

    def at_end(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the lab ends, before the parts that were started earlier are stopped."""
        self.stack.callback(callback)

    def pid(self, host: str) -> int:
        """Return the id of a process in the namespaces of a host or of the switch."""
        return self._pids[host]

    # -- programs

    def call(self, host: str, *argv: str) -> str:
        """Run a short command in a host's namespaces and return its output; raise SetupError if it fails."""
        return run_in(self.pid(host), argv)

    def start(
        self,
        name: str,
        argv: Sequence[str],
        host: str | None = None,
        *,
        procs: Sequence[Path] = (),
        cores: Collection[int] = (),
        directory: Path = REPOSITORY,
    ) -> Process:
        """Start a program; it ends with the lab at the latest.

        ``host``: the host whose namespaces the program uses, None: those of this process. ``procs``: files
        `cgroup.procs` of the cgroups that the program joins. ``cores``: processors on which it runs.
        """
        self._started += 1
        process = Process(
            name,
            argv,
            log=self.directory / f"{name.replace(' ', '-')}-{self._started}.log",
            namespace_pid=None if host is None else self.pid(host),
            cgroup_procs=procs,
            cores=cores,
            directory=directory,
        )
        self.at_end(process.stop)
        return process

    def start_program(self, program: Program, host: str, **limits: Any) -> Process:
        """Start a client, a server or another program of a load on a host; ``limits``: keyword arguments
        of `start`."""
        return self.start(f"{type(program).__name__} on {host}", command(program), host, **limits)

    def await_listening(self, process: Process, host: str, *ports: int) -> Process:
        """Return ``process`` once a program on the host listens on all ports."""
        where = ", ".join(map(str, ports))
        process.await_true(
            f"listens on {where}", lambda: all(listening(self.pid(host), port) for port in ports), READY_S
        )
        return process

    def start_controller(self, configuration: Mapping[str, object], *, patience_s: float | None = None) -> None:
        """Start the controller in the switch's namespace; ``patience_s``: seconds within which the controller must
        answer a command."""
        self.controller = SluiceRun(self.pid(SWITCH), self.directory, patience_s)
        self.controllers.append(self.controller)
        self.controller.configure(configuration)
        self.at_end(self.controller.stop)
        self.controller.start()

    def require_running(self) -> None:
        """Raise SetupError if the controller or a server has ended."""
        for process in (*(controller.process for controller in self.controllers), *self._servers):
            if process is not None:
                process.require_running()

    def await_neighbours(self) -> None:
        """Return once the controller has the MAC address of every neighbour in its configuration."""
        missing = "neighbours_missing"
        await_true("neighbours have answered", lambda: not self.controller.ask(command="status")[missing], READY_S)

    def start_delay(self, host: str, delays_s: Mapping[str, float], *, realtime: bool = False) -> None:
        """Start a delay line on a host; ``delays_s``: delay in seconds by network of source addresses (A.B.0.0/16).

        The packets that the host routes by the table DELAY_TABLE pass the delay line. With `realtime` the delay line
        has real-time priority.
        """
        line = command(Delay(DELAY_DEVICE, dict(delays_s)))
        self.start("delay line", before_all_else(line) if realtime else line, host).await_output("ready", READY_S)
        self.call(host, "ip", "link", "set", DELAY_DEVICE, "txqueuelen", DELAY_QUEUE, "up")
        self.call(host, "ip", "route", "add", "default", "dev", DELAY_DEVICE, "table", DELAY_TABLE)


class NamespaceNetwork(Network):
    """A network of namespaces: one for each host, and one for the embedded switch. Host names cannot be resolved.

    ```
     host --- port 1 sluice port 2 --- host, which delays the packets from its users' addresses
    ```
    """

    def hosts(self, names: Iterable[str]) -> None:
        """Create a namespace for each name."""
        ours = Path("/proc/self/ns/net").readlink()
        for name in names:
            self._pids[name] = self.start(name, ["unshare", "--net", "sleep", "7200"]).pid
        for name, pid in self._pids.items():
            there = Path(f"/proc/{pid}/ns/net")
            await_true(f"namespace of {name}", lambda there=there: there.readlink() != ours, READY_S)
            self.call(name, "ip", "link", "set", "lo", "up")

    def cable(self, ends: Mapping[str, str]) -> None:
        """Connect two hosts by a cable; ``ends`` names the interface at each host. Offloads are off, so that every
        frame carries a single segment."""
        (here, name), (there, peer) = ends.items()
        self.call(here, *f"ip link add {name} type veth peer name {peer} netns {self.pid(there)}".split())
        for host, end in ends.items():
            self.call(host, "ethtool", "-K", end, *(word for offload in OFFLOADS[:6] for word in (offload, "off")))
            self.call(host, "sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
            self.call(host, "ip", "link", "set", end, "up")

    def attach(self, host: HostPlan, *, inside: str = "", address: str = "", knows_gateway: bool = False) -> None:
        """Connect a host's `eth0` to the host's port of the switch, which becomes the host's default gateway.

        ``inside``: the namespace, if its name differs from the host's; ``address``: an address in place of the plan's.
        With ``knows_gateway`` the host has a static entry for the gateway's MAC address, because a switch without a
        controller does not answer ARP requests.
        """
        name, gateway = inside or host.name, str(host.gateway.ip)
        self.cable({name: "eth0", SWITCH: f"port{host.port}"})
        self.call(name, "ip", "link", "set", "eth0", "address", host.mac)
        self.call(name, "ip", "address", "add", address or str(host.interface), "dev", "eth0")
        if knows_gateway:
            permanent = ("lladdr", host.gateway_mac, "dev", "eth0", "nud", "permanent")
            self.call(name, "ip", "neighbour", "add", gateway, *permanent)
        self.call(name, "ip", "route", "add", "default", "via", gateway)

    def serve(self, ports: Iterable[int]) -> None:
        """Start the embedded switch at these ports, with real-time priority."""
        endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", self.directory)
        switch = EMBEDDED.command(EMBEDDED.find(), {port: f"port{port}" for port in ports}, endpoints)
        EMBEDDED.await_serving(self.start("sluice-switch", before_all_else(switch), SWITCH), endpoints, READY_S)

    def delay(self, host: str, delays_s: Mapping[str, float]) -> None:
        """Add addresses of users to a host, and delay the packets from them.

        ``delays_s``: delay in seconds by address or /16 network (A.B.0.0/16). No two keys may be in the same /16.
        """
        networks = {f"{'.'.join(network.split('.')[:2])}.0.0/16": delay_s for network, delay_s in delays_s.items()}
        self.start_delay(host, networks, realtime=True)
        settings = (f"{where}.rp_filter=0" for where in ("all", DELAY_DEVICE))
        forwarding = ("net.ipv4.ip_forward=1", f"net.ipv4.conf.{DELAY_DEVICE}.accept_local=1")
        self.call(host, "sysctl", "-qw", *forwarding, *(f"net.ipv4.conf.{setting}" for setting in settings))
        for address in delays_s:
            self.call(host, "ip", "route", "add", "local", address, "dev", "lo")
            self.call(host, "ip", "rule", "add", "from", address, "iif", "lo", "lookup", DELAY_TABLE)


class MininetNetwork(Network):
    """A network of Mininet nodes: hosts around a switch of the kind `kind`, and cgroups for the servers."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.nodes: dict[str, Node] = {}

    def switch_class(self) -> type[ProcessSwitch]:
        """Return the class of the switch, or of the router that replaces the switch."""
        return SWITCHES[self.kind]

    def pid(self, host: str) -> int:
        """Return the id of a process in the namespaces of a host or of the switch."""
        return self.nodes[host].pid

    def require_running(self) -> None:
        """Raise SetupError if the switch, the controller or a server has ended."""
        if self.switch.process is not None:
            self.switch.process.require_running()
        super().require_running()

    def _prepare(self) -> None:
        require_prerequisites()
        setLogLevel("output")
        # Without this flag Mininet would raise limits of the machine (sysctls) for large networks, which a lab does not
        # need.
        Mininet.inited = True
        self._hierarchies = cgroups.mounted()
        cgroups.remove_stale(self._hierarchies)
        super()._prepare()
        self.at_end(lambda: cgroups.remove_own(self._hierarchies))

    def _build_network(self, hosts: Iterable[HostPlan], more: Callable[[Mininet], None] | None = None) -> None:
        """Create the switch and its hosts, each on the port of its plan; `more` may add further nodes before all nodes
        start.

        Signals are delayed meanwhile: Mininet sends commands to a node's shell, and cannot stop a node whose answer it
        has not read.
        """
        switch_class = self.switch_class()
        with held_back():
            self.net = net = Mininet(controller=None, switch=switch_class, build=False)
            self.at_end(net.stop)
            switch = net.addSwitch(SWITCH, switch_class, directory=self.directory, realtime=True)
            assert isinstance(switch, ProcessSwitch)
            self.switch = self.nodes[SWITCH] = switch
            for host in hosts:
                route = f"via {host.gateway.ip}"
                node = net.addHost(host.name, LabHost, ip=str(host.interface), mac=host.mac, defaultRoute=route)
                self.nodes[host.name] = node
                net.addLink(node, switch, port1=0, port2=host.port)
            if more is not None:
                more(net)
            net.build()
        net.start()
        self.at_end(switch.stop_process)
