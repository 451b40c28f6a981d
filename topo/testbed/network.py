"""What every lab stands on: a directory, cgroups, a switch with hosts around it; all of it gone when the lab ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from topo.plan.network import HostPlan
from topo.testbed import cgroups
from topo.testbed.interrupts import held_back, undisturbed
from topo.testbed.mininet import Mininet, Node, setLogLevel
from topo.testbed.nodes import SWITCHES, LabHost, ProcessSwitch
from topo.testbed.prerequisites import require_prerequisites
from topo.testbed.processes import Process

SWITCH_NAME = "sw1"


class Ground:
    """A context manager; a lab says in `build` what it consists of, in order, and it is taken down in reverse."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._stack = ExitStack()
        self._nodes: dict[str, Node] = {}
        self._servers: list[Process] = []

    def build(self) -> None:
        """Start everything; what it hands to the stack is ended with the lab, also when this raises."""
        raise NotImplementedError

    def switch_class(self) -> type[ProcessSwitch]:
        """Return what stands in the middle of the network."""
        return SWITCHES[self.kind]

    def __enter__(self) -> Self:
        try:
            self.build()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def at_end(self, callback: Callable[[], object]) -> None:
        """Have `callback` called when the lab ends, before what was started earlier is stopped."""
        self._stack.callback(callback)

    def pid(self, host: str) -> int:
        """Return a process that lives in the namespaces of a host or of the switch."""
        return self._nodes[host].pid

    def _prepare(self) -> None:
        require_prerequisites()
        setLogLevel("output")
        # Mininet would raise limits of the whole machine (sysctls) for large networks; a lab needs none of it.
        Mininet.inited = True
        self._hierarchies = cgroups.mounted()
        cgroups.remove_stale(self._hierarchies)
        self.directory = Path(tempfile.mkdtemp(prefix=f"{cgroups.PREFIX}{os.getpid()}-"))
        self._stack.callback(shutil.rmtree, self.directory, ignore_errors=True)
        self._stack.callback(cgroups.remove_own, self._hierarchies)

    def _build_network(self, hosts: Iterable[HostPlan], more: Callable[[Mininet], None] | None = None) -> None:
        """Put hosts around the switch, each on the port of its plan; `more` may add others before all starts.

        An interrupt waits meanwhile: Mininet talks to a node's shell, and refuses to take down a node whose answer it
        did not read.
        """
        switch_class = self.switch_class()
        with held_back():
            self.net = net = Mininet(controller=None, switch=switch_class, build=False)
            self._stack.callback(net.stop)
            switch = net.addSwitch(SWITCH_NAME, switch_class, directory=self.directory, realtime=True)
            assert isinstance(switch, ProcessSwitch)
            self.switch = self._nodes[SWITCH_NAME] = switch
            for host in hosts:
                route = f"via {host.gateway.ip}"
                node = net.addHost(host.name, LabHost, ip=str(host.interface), mac=host.mac, defaultRoute=route)
                self._nodes[host.name] = node
                net.addLink(node, switch, port1=0, port2=host.port)
            if more is not None:
                more(net)
            net.build()
        net.start()
        self._stack.callback(switch.stop_process)

    def _close(self) -> None:
        with undisturbed():
            self._stack.close()
