"""Loss events as the switch counts them, and as the sender's kernel does; segments get lost on both sides of it.

```
 server --- router --- 2 sluice 1 --- client
```
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from experiments.sabtnet import Distance
from experiments.sabtplace import MeasuredPlace
from testbed.processes import run_in
from topo.nets import SWITCH

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

DISTANCES = (Distance("10.101.0.1", 0.01, 6), Distance("10.102.0.1", 0.03, 6))
SECONDS = 8.0
BEHIND, IN_FRONT = ("client", "INPUT"), ("router", "FORWARD")
RECOVERIES = ("TCPSackRecovery", "TCPRenoRecovery", "TCPLossProbeRecovery")
LEAST_EVENTS, SHARE = 40, 0.1
TRIES = 3
ROUTER = "10.0.2.3"


class RoutedPlace(MeasuredPlace):
    """With a router between server and switch, which forwards in the server's name."""

    names: Sequence[str] = (SWITCH, "client", "server", "router")

    def attach(self, host: str, port: int, mac: str, address: str, gateway_mac: str | None = None) -> None:
        """See Net."""
        if host != "server":
            super().attach(host, port, mac, address, gateway_mac)
            return
        super().attach("router", port, mac, ROUTER, gateway_mac)
        self.cable({"router": "eth1", "server": "eth0"})
        router, server = self.pid("router"), self.pid("server")
        run_in(router, ["sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0"])
        run_in(router, ["ip", "route", "add", address, "dev", "eth1"])
        run_in(router, ["ip", "address", "add", "10.0.9.1/24", "dev", "eth1"])
        run_in(server, ["ip", "address", "add", f"{address}/32", "dev", "eth0"])
        run_in(server, ["ip", "route", "add", "10.0.9.1", "dev", "eth0"])
        run_in(server, ["ip", "route", "add", "default", "via", "10.0.9.1", "src", address])


def counted(loses: tuple[str, str], loss: float) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """The kernel's counts, and the switch's sums."""
    for _ in range(TRIES):
        with RoutedPlace(DISTANCES) as place:
            place.loses = loses
            found: dict[str, Any] = place.sent("cubic", loss, SECONDS)
        measured = [one["switch"] for one in found["transfers"]]
        if None not in measured:
            break
    else:
        raise AssertionError("two connections share a slot, again and again")
    sums = {name: sum(one[name] for one in measured) for name in ("losses", "again", "holes", "probes", "timeouts")}
    print(found["kernel"], sums)
    return found["kernel"], sums


@pytest.mark.parametrize("loses", [BEHIND, IN_FRONT], ids=["behind", "in front"])
def test_loss_events_are_those_of_the_senders_kernel(loses: tuple[str, str]) -> None:
    kernel, seen = counted(loses, 0.01)
    recoveries = sum(kernel[name] for name in RECOVERIES)
    assert recoveries >= LEAST_EVENTS
    assert (1 - SHARE) * recoveries <= seen["losses"] <= (1 + SHARE) * recoveries + kernel["TCPTimeouts"]
    assert (seen["holes"] > 0) is (loses == IN_FRONT)
