"""Plan of the network in Chen & Heidemann's Figure 17.

```
 c1 .. c6 (crowd) --+                             |2-- s1 10.0.11.1  fast target
                    r1 --bottleneck-- 1| sluice   |3-- s2 10.0.12.1  slow target
 b1 (bystander) ----+                             |4-- s3 10.0.13.1  bystander's server
```
sluice has the role of R0, the NEWS router; r1 that of R1, a Linux router. The bottleneck is on the switch's port 1,
towards the clients. Each client host has a /16 network with an address for each client of the request log, because
production mode distinguishes clients by address.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network

from sluice.addresses import Address, from_text

from topo.plan.network import HostPlan

ROUTER = HostPlan("r1", 1, 1)
FAST, SLOW, OTHER = HostPlan("s1", 2, 11), HostPlan("s2", 3, 12), HostPlan("s3", 4, 13)
SERVERS = (FAST, SLOW, OTHER)
SWITCH_HOSTS = (ROUTER, *SERVERS)

TARGET, BYSTANDER = "target", "bystander"
TARGET_ADDRESS, BYSTANDER_ADDRESS = from_text("10.0.0.100"), from_text("10.0.0.101")
"""The services' addresses; the crowd sends its requests to the target."""
PORT = 80
BULK_PORT = 8080
"""Port of the bulk transfer on s3. Its receiver connects to s3's own address, so the bulk traffic belongs to no
service."""

CLIENTS_NETWORK = IPv4Network("10.96.0.0/12")


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A host of clients, connected to the router r1."""

    name: str
    number: int
    round_trip_s: float
    """Round trip of the host's clients in seconds, before compression."""

    @property
    def router_interface(self) -> IPv4Interface:
        """r1's address on the host's link."""
        return IPv4Interface(f"10.2.{self.number}.1/30")

    @property
    def interface(self) -> IPv4Interface:
        """The host's address on its link."""
        return IPv4Interface(f"10.2.{self.number}.2/30")

    @property
    def pool(self) -> IPv4Network:
        """The network with the addresses of the host's clients."""
        return IPv4Network(f"10.{100 + self.number}.0.0/16")

    @property
    def own_address(self) -> Address:
        """The host's own address in the pool; no client of the log has it."""
        return self.pool[1]


CROWD = tuple(
    ClientPlan(f"c{number}", number, delay)
    for number, delay in enumerate((0.040, 0.060, 0.080, 0.100, 0.140, 0.200), start=1)
)
"""The hosts of the crowd's clients. Their round trips are similar to those of Chen & Heidemann, whose distribution is
not published."""
WITNESS = ClientPlan("b1", 7, 0.080)
"""The host of the bystander's clients."""
CLIENTS = (*CROWD, WITNESS)

ROUTES = [{"to": str(CLIENTS_NETWORK), "via": str(ROUTER.address)}]
"""The switch's route to the clients' networks."""
