"""The kernel as a router in the switch's place."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.processes import run_in
from topo.hosts import turn_offloads_off
from topo.mn import Node
from topo.switches import ProcessSwitch
from workload.plan import HostPlan

KERNEL = "kernel"
"""What a run names in place of the kind of the switch."""


class KernelRouter(ProcessSwitch):
    """It has every subnet's gateway address, and no process."""

    program = "the kernel"

    def around(self) -> Sequence[HostPlan]:
        """Return the hosts around it."""
        raise NotImplementedError

    def start(self, controllers: list[Node]) -> None:
        """Give every interface its gateway's addresses, and forward."""
        del controllers
        for setting in ("net.ipv6.conf.all.disable_ipv6=1", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0"):
            run_in(self.pid, ["sysctl", "-q", "-w", setting])
        run_in(self.pid, ["ip", "link", "set", "lo", "up"])
        for host in self.around():
            interface = self.intfs[host.port].name
            run_in(self.pid, ["ip", "link", "set", interface, "address", host.gateway_mac, "up"])
            run_in(self.pid, ["ip", "address", "add", str(host.gateway), "dev", interface])
            turn_offloads_off(self.pid, interface)
