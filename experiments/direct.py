"""Labs without sluice: the load client and a server on a direct link, or with a Linux kernel as router between them."""

from __future__ import annotations

from experiments.experiment import Say
from topo.labs.alternatives import AlternativeLab, Router
from topo.plan.network import LOAD_CLIENT, SERVER_CPUS, SERVERS, pool_of
from topo.testbed.mininet import Mininet

SERVER = SERVERS[0]
ONE = pool_of((SERVER_CPUS,))


class RoutedLab(AlternativeLab):
    """A lab in which the kernel routes in the network namespace of the switch; the load is sent to the server's own
    address."""

    target = SERVER.address

    def __init__(self, say: Say) -> None:
        super().__init__("routed", say=say, pool=ONE)

    def switch_class(self) -> type[Router]:
        """Return the class that replaces the switch: a kernel router without load balancing."""
        return Router


class DirectLab(RoutedLab):
    """A lab in which a second link joins client and server directly."""

    load_interface = f"{LOAD_CLIENT.name}-eth1"

    def _before_start(self, net: Mininet) -> None:
        super()._before_start(net)
        net.addLink(self.nodes[LOAD_CLIENT.name], self.nodes[SERVER.name], port1=1, port2=1)

    def build(self) -> None:
        """Build the lab; then route between client and server over the direct link."""
        super().build()
        for here, there in ((LOAD_CLIENT, SERVER), (SERVER, LOAD_CLIENT)):
            interface = f"{here.name}-eth1"
            self.call(here.name, "ip", "link", "set", interface, "up")
            self.call(here.name, "ip", "route", "add", f"{there.address}/32", "dev", interface)
