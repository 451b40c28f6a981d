"""Where buffers are shared: the place of measured transfers with a controller, and bottlenecks before the client.

```
 server 10.0.2.2 --- 2 sluice 1 --- 10.0.1.2 router --- client, 10.101.0.1, 10.102.0.1, ...
                                    a queue a way       loses segments; holds its own for the time that it is away
```
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import yaml

from experiments.sabtnet import FAR, PORT, VIP, Way
from experiments.sabtplace import GRACE_S, MeasuredPlace
from experiments.sabtswitch import CONFIG
from topo.testbed.controller import SluiceRun
from topo.testbed.nets import READY_S, SWITCH
from topo.testbed.processes import run_in

NEAR, AWAY = "10.0.9.1", "10.0.9.2"
"""Router and client on the cable between them."""
RATE = 1_000_000_000
"""Bytes per second of a connection: not paced."""
SETTLE_S = 5.0
STARTING_S = 5.0
CONGESTION = "reno"
LOOK_S = 2.0
"""Before the end the controller is asked."""


class SharedPlace(MeasuredPlace):
    """A context manager."""

    names = (SWITCH, "router", "client", "server")

    def __init__(self, ways: Sequence[Way]) -> None:
        super().__init__(ways)
        self.ways = ways

    # -- building

    def _far(self) -> None:
        """Also what lies between the router and the client."""
        router, client = self.pid("router"), self.pid("client")
        self.cable({"router": "far0", "client": "near0"})
        for pid, name, address in ((router, "far0", NEAR), (client, "near0", AWAY)):
            run_in(pid, ["ip", "address", "add", f"{address}/24", "dev", name])
        run_in(router, ["sysctl", "-qw", "net.ipv4.ip_forward=1"])
        run_in(router, ["ip", "route", "add", FAR, "via", AWAY])
        run_in(client, ["ip", "route", "add", "default", "via", NEAR])
        self._tc("qdisc", "root", "handle", "1:", "htb")
        for number, way in enumerate(self.ways, 1):
            of = f"1:{number}"
            self._tc("class", "parent", "1:", "classid", of, "htb", "rate", f"{way.mbit_s}mbit", "quantum", "1514")
            self._tc("qdisc", "parent", of, "bfifo", "limit", f"{way.queue_kib}kb")
            match = ("u32", "match", "ip", "dst", f"{way.address}/32")
            self._tc("filter", "parent", "1:", "protocol", "ip", *match, "flowid", of)
            if way.loss:
                rule = ["-p", "tcp", "-d", way.address, "-m", "statistic", "--mode", "random"]
                lose = ["iptables", "-A", "INPUT", *rule, "--probability", str(way.loss), "-j", "DROP"]
                run_in(client, lose)
        super()._far()

    def _tc(self, what: str, *words: str) -> None:
        run_in(self.pid("router"), ["tc", what, "add", "dev", "far0", *words])

    def _control(self) -> None:
        self.controller = SluiceRun(namespace_pid=self.pid(SWITCH), directory=self.directory)
        self.controller.configure(self._configuration(None))
        self.stack.callback(self.controller.stop)
        self.controller.start()

    def _configuration(self, send: Mapping[str, object] | None) -> Mapping[str, Any]:
        content = yaml.safe_load(CONFIG.replace("CONTROL", str(self.controller.control_socket)))
        if send:
            content["services"][0]["resources"] = {"send": dict(send)}
        return content

    # -- running

    def share(self, send: Mapping[str, object] | None, connections: Sequence[int], seconds: float) -> dict[str, Any]:
        """Transfers, so many on each way, while ``send`` is what the service shares; None: plain Linux.

        Gives Mbit/s of each way after the beginning, what the status shows of the server near the end, and timeouts.
        """
        self.controller.reload(self._configuration(send))
        before = self.kernel()
        options = {
            "port": PORT,
            "connections": sum(connections),
            "congestion": CONGESTION,
            "rate": RATE,
            "seconds": SETTLE_S + seconds,
            "settle": SETTLE_S,
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with ExitStack() as ends:
            sender = self.start("sender", [sys.executable, "-m", "experiments.sabtsender", *words], "server")
            ends.callback(sender.stop)
            sender.await_output("listening", READY_S)
            sources = [f"{way.address}={many}" for way, many in zip(self.ways, connections, strict=True) if many]
            command = [sys.executable, "-m", "experiments.sabtreceiver", "--to", f"{VIP}:{PORT}", *sources]
            receiver = self.start("receiver", command, "client")
            ends.callback(receiver.stop)
            time.sleep(SETTLE_S + seconds - LOOK_S)
            shown = self._shown() if send else None
            sender.wait(SETTLE_S + seconds + GRACE_S)
        told = json.loads(sender.output().splitlines()[-1])
        rates = [
            8e-6 * sum(one["acked"] for one in told if one["client"] == way.address) / seconds for way in self.ways
        ]
        timeouts = self.kernel()["TCPTimeouts"] - before["TCPTimeouts"]
        return {"mbit_s": rates, "shown": shown, "timeouts": timeouts}

    def _shown(self) -> Mapping[str, int]:
        """What the status shows of the server's buffers."""
        (service,) = self.controller.ask(command="status")["services"]
        (server,) = service["servers"]
        return server["resources"]["send"]
