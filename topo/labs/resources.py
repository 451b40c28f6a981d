"""The lab of servers' TCP resources: the demo's network with one server. The controller shares the server's send
buffers among its connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from topo.labs.web import Lab
from topo.plan.network import DOWNLOAD_CLIENT, LOAD_CLIENT, SERVERS, Balance, HostPlan, PoolPlan

POOL = PoolPlan(SERVERS[:1], (0.5,))
BALANCE = Balance("production", 2.0, 10.0)
BUDGET = 256 << 10
"""Bytes of all send buffers of the server together."""
PATHS = {LOAD_CLIENT: (8, 512), DOWNLOAD_CLIENT: (2, 24)}
"""By client: rate of the path in Mbit/s, and capacity in KiB of the queue before the path. The paths are bottlenecks:
without them the connections would not compete for the send buffers."""

HINT = """\
The server s1 has 256 KiB to send from; c1 is at 8 Mbit/s, c2 at 2 Mbit/s with a short queue that loses. Try:
  c1 sh -c 'for i in 1 2 3 4 5 6 7 8; do curl -so /dev/null http://10.0.0.100/long; done' &
  c2 sh -c 'for i in 1 2 3 4 5 6 7 8; do curl -so /dev/null http://10.0.0.100/long; done' &
  status                            needs and shares, a second old: c1's is larger
  s1 ss -tin sport = :80            snd_wnd: the windows, as the switch has capped them
`help` lists all commands, `exit` ends the lab and removes everything."""


class ResourcesLab(Lab):
    """A lab with a server whose send buffers are small, and two paths of different rates."""

    def __init__(
        self,
        kind: str,
        *,
        say: Callable[[str], None] = print,
        resources: Mapping[str, object] | None = None,
    ) -> None:
        """``resources``: the block ``resources`` of the service's configuration; None: a block with a budget of BUDGET
        bytes."""
        super().__init__(kind, BALANCE, say=say, pool=POOL)
        self._resources = resources or {"send": {"budget": BUDGET}}

    def configuration(self) -> dict[str, object]:
        """Return the controller's configuration; the caller adds the paths of the controller's files."""
        document = super().configuration()
        (service,) = cast(list[dict[str, object]], document["services"])
        return {**document, "services": [{**service, "resources": dict(self._resources)}]}

    def build(self) -> None:
        """Build the lab, and add the bottlenecks towards the clients."""
        super().build()
        self._tc("qdisc", "add", "root", "handle", "1:", "htb")
        for client, (mbit_s, queue_kib) in PATHS.items():
            of = f"1:{client.port}"
            self._tc("class", "add", "parent", "1:", "classid", of, "htb", "rate", f"{mbit_s}mbit")
            self._tc("qdisc", "add", "parent", of, "bfifo", "limit", f"{queue_kib}kb")
            match = ("u32", "match", "ip", "dst", f"{client.address}/32")
            self._tc("filter", "add", "parent", "1:", "protocol", "ip", *match, "flowid", of)

    def widen(self, client: HostPlan, mbit_s: float) -> None:
        """Change the rate of the path to a client."""
        self._tc("class", "change", "parent", "1:", "classid", f"1:{client.port}", "htb", "rate", f"{mbit_s}mbit")

    def _tc(self, what: str, verb: str, *words: str) -> None:
        (server,) = self.pool.servers
        self.call(server.name, "tc", what, verb, "dev", f"{server.name}-eth0", *words)
