"""The lab of shared send buffers: the lab of measured transfers with a controller, and with bottlenecks between switch
and client.

```
 server 10.0.2.1 --- 2 sluice 1 --- 10.0.1.1 router --- client, 10.101.0.1, 10.102.0.1, ...
                                    a queue per path    drops some arriving segments; delays those it sends
```
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

from topo.labs.transfers import GRACE_S, Distance, TransfersLab, configuration
from topo.plan.network import FAR
from topo.testbed.network import SWITCH

NEAR, AWAY = "10.0.9.1", "10.0.9.2"
"""Addresses of router and client on the cable between router and client."""
RATE = 1_000_000_000
"""Pacing rate of a connection in bytes per second, high enough to have no effect."""
SETTLE_S = 5.0
STARTING_S = 5.0
CONGESTION = "reno"
READ_S = 2.0
"""Seconds before the end of the transfers at which the controller's status is read."""


@dataclass(frozen=True, slots=True)
class Way(Distance):
    """A path to the client: a distance, a bottleneck that the path's connections share, and losses at the client."""

    mbit_s: float
    queue_kib: int
    loss: float = 0.0


class SharingLab(TransfersLab):
    """The lab of shared send buffers, as a context manager."""

    names = (SWITCH, "router", "client", "server")

    def __init__(self, ways: Sequence[Way]) -> None:
        super().__init__(ways)
        self.ways = ways

    # -- building

    def _far(self) -> None:
        """Build the paths between router and client, then the client's delays."""
        self.cable({"router": "far0", "client": "near0"})
        for host, name, address in (("router", "far0", NEAR), ("client", "near0", AWAY)):
            self.call(host, "ip", "address", "add", f"{address}/24", "dev", name)
        self.call("router", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.call("router", "ip", "route", "add", FAR, "via", AWAY)
        self.call("client", "ip", "route", "add", "default", "via", NEAR)
        self._tc("qdisc", "root", "handle", "1:", "htb")
        for number, way in enumerate(self.ways, 1):
            of = f"1:{number}"
            self._tc("class", "parent", "1:", "classid", of, "htb", "rate", f"{way.mbit_s}mbit", "quantum", "1514")
            self._tc("qdisc", "parent", of, "bfifo", "limit", f"{way.queue_kib}kb")
            match = ("u32", "match", "ip", "dst", f"{way.address}/32")
            self._tc("filter", "parent", "1:", "protocol", "ip", *match, "flowid", of)
            if way.loss:
                chance = ("-m", "statistic", "--mode", "random", "--probability", str(way.loss))
                self.call("client", "iptables", "-A", "INPUT", "-p", "tcp", "-d", way.address, *chance, "-j", "DROP")
        super()._far()

    def _tc(self, what: str, *words: str) -> None:
        self.call("router", "tc", what, "add", "dev", "far0", *words)

    def _control(self) -> None:
        self.start_controller(configuration())

    # -- running

    def share(self, send: Mapping[str, object] | None, connections: Sequence[int], seconds: float) -> dict[str, Any]:
        """Make transfers on all paths for ``seconds`` after a settling time.

        ``connections``: number of transfers by path. ``send``: options of the service's shared send buffers; None: the
        kernel's default. Returns the rate of each path in Mbit/s after the settling time, the state of the
        server's send buffers near the end (None if ``send`` is None), and the number of TCP timeouts.
        """
        document = configuration()
        if send:
            (web,) = cast(list[dict[str, object]], document["services"])
            web["resources"] = {"send": dict(send)}
        self.controller.reload(document)
        before = self.kernel()
        by_address = {way.address: count for way, count in zip(self.ways, connections, strict=True) if count}
        length_s = SETTLE_S + seconds
        options = {"congestion": CONGESTION, "rate": RATE, "seconds": length_s, "settle": SETTLE_S}
        with ExitStack() as ends:
            sender = self.transfer(ends, by_address, **options)
            time.sleep(length_s - READ_S)
            shown = self._shown() if send else None
            sender.wait(length_s + GRACE_S)
        reported = sender.result(0)
        rates = [
            8e-6 * sum(row["acked"] for row in reported if row["client"] == way.address) / seconds for way in self.ways
        ]
        timeouts = self.kernel()["TCPTimeouts"] - before["TCPTimeouts"]
        return {"mbit_s": rates, "shown": shown, "timeouts": timeouts}

    def _shown(self) -> Mapping[str, int]:
        """Return the state of the server's buffers in the controller's status."""
        (web,) = self.controller.ask(command="status")["services"]
        (server,) = web["servers"]
        return server["resources"]["send"]
