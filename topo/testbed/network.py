"""Networks of labs, built in order and taken down in reverse: with Mininet, or of bare namespaces around one switch."""

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
"""A delay line's TUN device, the routing table that leads to it, and the packets that the device queues."""


class Network:
    """A network as a context manager: a lab's `build` starts its parts in order, and the lab's end stops them."""

    def __init__(self) -> None:
        self.stack = ExitStack()
        self.controllers: list[SluiceRun] = []
        """The controllers that were started, at most one."""
        self._pids: dict[str, int] = {}
        self._servers: list[Process] = []
        self._started = 0

    def build(self) -> None:
        """Start everything; callbacks of the stack run at the lab's end, also if this method raises."""
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
        self.directory.chmod(0o755)  # a web server's workers are not root

    def _close(self) -> None:
        with undisturbed():
            self.stack.close()

    def at_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` called when the lab ends, before what was started earlier is stopped."""
        self.stack.callback(callback)

    def pid(self, host: str) -> int:
        """Return a process that lives in the namespaces of a host or of the switch."""
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
        """Start a program in a host's namespaces (None: ours), in cgroups by their files ``procs``, on ``cores``.

        It ends with the lab at the latest.
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
        """Start a client, a server or another program of a load on a host; ``limits`` are those of `start`."""
        return self.start(f"{type(program).__name__} on {host}", command(program), host, **limits)

    def await_listening(self, process: Process, host: str, *ports: int) -> Process:
        """Return a server's process once it listens on all ports."""
        where = ", ".join(map(str, ports))
        process.await_true(
            f"listens on {where}", lambda: all(listening(self.pid(host), port) for port in ports), READY_S
        )
        return process

    def start_controller(self, configuration: Mapping[str, object], *, patience_s: float | None = None) -> None:
        """Start the controller in the switch's namespace; ``patience_s``: seconds until it has answered a command."""
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
        """Return once the controller has the MAC address of every neighbour of its configuration."""
        missing = "neighbours_missing"
        await_true("neighbours have answered", lambda: not self.controller.ask(command="status")[missing], READY_S)

    def start_delay(self, host: str, delays_s: Mapping[str, float], *, realtime: bool = False) -> None:
        """Start a delay line on a host, where packets wait by their sources: seconds by network (A.B.0.0/16).

        Packets pass it that are looked up in the routing table DELAY_TABLE. With `realtime` it runs before all else.
        """
        line = command(Delay(DELAY_DEVICE, dict(delays_s)))
        self.start("delay line", before_all_else(line) if realtime else line, host).await_output("ready", READY_S)
        self.call(host, "ip", "link", "set", DELAY_DEVICE, "txqueuelen", DELAY_QUEUE, "up")
        self.call(host, "ip", "route", "add", "default", "dev", DELAY_DEVICE, "table", DELAY_TABLE)


class NamespaceNetwork(Network):
    """A namespace for each host and one for the embedded switch; hosts cannot be looked up by name.

    ```
     host --- port 1 sluice port 2 --- host, which holds what its users send for the time that they are away
    ```
    """

    def hosts(self, names: Iterable[str]) -> None:
        """Make a namespace for each host."""
        ours = Path("/proc/self/ns/net").readlink()
        for name in names:
            self._pids[name] = self.start(name, ["unshare", "--net", "sleep", "7200"]).pid
        for name, pid in self._pids.items():
            there = Path(f"/proc/{pid}/ns/net")
            await_true(f"namespace of {name}", lambda there=there: there.readlink() != ours, READY_S)
            self.call(name, "ip", "link", "set", "lo", "up")

    def cable(self, ends: Mapping[str, str]) -> None:
        """Lay a cable between the interfaces of two hosts, by host; without offloads, so that a frame is a segment."""
        (here, name), (there, peer) = ends.items()
        self.call(here, *f"ip link add {name} type veth peer name {peer} netns {self.pid(there)}".split())
        for host, end in ends.items():
            self.call(host, "ethtool", "-K", end, *(word for offload in OFFLOADS[:6] for word in (offload, "off")))
            self.call(host, "sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1")
            self.call(host, "ip", "link", "set", end, "up")

    def attach(self, host: HostPlan, *, inside: str = "", address: str = "", knows_gateway: bool = False) -> None:
        """Lay a cable from a host's `eth0` to its port of the switch, which is the host's default gateway.

        ``inside`` is a namespace of another name, ``address`` another one than the plan's. With ``knows_gateway`` the
        host need not ask for the gateway's MAC address: a switch without a controller does not answer.
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
        """Give a host users' addresses, or networks (A.B.0.0/16), each of a /16 of its own.

        Packets from them are delayed by these seconds.
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
    """Hosts around a switch of a kind, as Mininet nodes, and cgroups for servers."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.nodes: dict[str, Node] = {}

    def switch_class(self) -> type[ProcessSwitch]:
        """Return the class of the switch, or of the router in its place."""
        return SWITCHES[self.kind]

    def pid(self, host: str) -> int:
        """Return a process that lives in the namespaces of a host or of the switch."""
        return self.nodes[host].pid

    def require_running(self) -> None:
        """Raise SetupError if the switch, the controller or a server has ended."""
        if self.switch.process is not None:
            self.switch.process.require_running()
        super().require_running()

    def _prepare(self) -> None:
        require_prerequisites()
        setLogLevel("output")
        # Mininet would raise limits of the whole machine (sysctls) for large networks; a lab needs none of it.
        Mininet.inited = True
        self._hierarchies = cgroups.mounted()
        cgroups.remove_stale(self._hierarchies)
        super()._prepare()
        self.at_end(lambda: cgroups.remove_own(self._hierarchies))

    def _build_network(self, hosts: Iterable[HostPlan], more: Callable[[Mininet], None] | None = None) -> None:
        """Put hosts around the switch, each on the port of its plan; `more` may add others before all starts.

        An interrupt waits meanwhile: Mininet talks to a node's shell, and refuses to take down a node whose answer it
        did not read.
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
