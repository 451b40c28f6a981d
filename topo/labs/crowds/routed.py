"""The control run: the kernel routes in the switch's place, and nobody balances, measures or limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.addresses import Address

from topo.labs.crowds.network import NewsLab
from topo.plan.crowd.further import Further
from topo.plan.crowd.network import BYSTANDER, OTHER, PORT, ROUTES, SWITCH_HOSTS, TARGET
from topo.plan.crowd.settings import Settings
from topo.plan.network import HostPlan
from topo.testbed.mininet import Node
from topo.testbed.nodes import KERNEL, KernelRouter
from topo.testbed.processes import run_in


class NewsRouter(KernelRouter):
    """Knows the way to the clients, too."""

    def around(self) -> Sequence[HostPlan]:
        """Return the clients' router and the servers."""
        return SWITCH_HOSTS

    def start(self, controllers: list[Node]) -> None:
        """Start routing."""
        super().start(controllers)
        for route in ROUTES:
            run_in(self.pid, ["ip", "route", "add", route["to"], "via", route["via"]])


class RoutedNewsLab(NewsLab):
    """Figure 17's network without switch and controller; the clients ask the servers at their own addresses."""

    controlled = False

    def __init__(self, settings: Settings, target: HostPlan, further: Sequence[Further] = ()) -> None:
        super().__init__(KERNEL, settings, lambda socket, directory, thrift: {}, further)
        self._target = target

    def switch_class(self) -> type[KernelRouter]:
        """Return the router."""
        return NewsRouter

    @property
    def places(self) -> Mapping[str, tuple[Address, int]]:
        """Where the clients' requests go, address and port, by service."""
        further = {one.name: (one.server.address, one.port) for one in self.further}
        return {TARGET: (self._target.address, PORT), BYSTANDER: (OTHER.address, PORT), **further}
