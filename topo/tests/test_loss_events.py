"""Tests that switch and sender's kernel count the same loss events, with lost segments, lost ACKs and duplicate
segments.

```
 server --- router --- 2 sluice 1 --- client
```
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from fcntl import ioctl
from typing import Any

import pytest

from topo.labs.transfers import SERVER, Distance, TransfersLab, slot_of
from topo.plan.network import VIP, WEB_PORT, HostPlan
from topo.testbed.namespaces import socket_in
from topo.testbed.network import SWITCH
from topo.testbed.processes import await_true
from topo.tests import needs

pytestmark = needs.ROOT

DISTANCES = (Distance("10.101.0.1", 0.01, 6), Distance("10.102.0.1", 0.03, 6))
SECONDS = 8.0
BEHIND, IN_FRONT = ("client", "INPUT"), ("router", "FORWARD")
RECOVERIES = ("TCPSackRecovery", "TCPRenoRecovery", "TCPLossProbeRecovery")
LEAST_EVENTS, SHARE = 40, 0.1
TRIES = 3
ROUTER = "10.0.2.3"
SIOCOUTQ = 0x5411
"""ioctl that returns the number of unacknowledged bytes of a socket (include/uapi/linux/sockios.h)."""
PATIENCE_S = 20.0
BURSTS, MSS = 30, 1448


class RoutedLab(TransfersLab):
    """The lab of transfers with a router between server and switch. Towards the switch the router has the
    server's MAC address, so that it receives the packets to the server."""

    names: Sequence[str] = (SWITCH, "client", "server", "router")

    def attach(self, host: HostPlan, **options: Any) -> None:
        """Attach a host to the switch; the server is attached through the router."""
        if host is not SERVER:
            super().attach(host, **options)
            return
        super().attach(host, inside="router", address=f"{ROUTER}/24", **options)
        self.cable({"router": "eth1", "server": "eth0"})
        address = str(host.address)
        self.call("router", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv4.conf.all.send_redirects=0")
        self.call("router", "ip", "route", "add", address, "dev", "eth1")
        self.call("router", "ip", "address", "add", "10.0.9.1/24", "dev", "eth1")
        self.call("server", "ip", "address", "add", f"{address}/32", "dev", "eth0")
        self.call("server", "ip", "route", "add", "10.0.9.1", "dev", "eth0")
        self.call("server", "ip", "route", "add", "default", "via", "10.0.9.1", "src", address)


def counted(loses: tuple[str, str], loss: float) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Make transfers of which `loses` (a host, and a chain of its packet filter) drops a share `loss` of the segments.

    Return the counts of the sender's kernel, and the switch's counts summed over all connections.
    """
    for _ in range(TRIES):
        with RoutedLab(DISTANCES) as place:
            place.loses = loses
            record: dict[str, Any] = place.sent("cubic", loss, SECONDS)
        measured = [transfer["switch"] for transfer in record["transfers"]]
        if None not in measured:
            break
    else:
        raise AssertionError("two connections share a slot, again and again")
    sums = {name: sum(row[name] for row in measured) for name in ("losses", "again", "holes", "probes", "timeouts")}
    print(record["kernel"], sums)
    return record["kernel"], sums


@pytest.mark.parametrize("loses", [BEHIND, IN_FRONT], ids=["behind", "in front"])
def test_loss_events_are_those_of_the_senders_kernel(loses: tuple[str, str]) -> None:
    kernel, seen = counted(loses, 0.01)
    recoveries = sum(kernel[name] for name in RECOVERIES)
    assert recoveries >= LEAST_EVENTS
    assert (1 - SHARE) * recoveries <= seen["losses"] <= (1 + SHARE) * recoveries + kernel["TCPTimeouts"]
    assert (seen["holes"] > 0) is (loses == IN_FRONT)


def unacknowledged(connection: socket.socket) -> int:
    """Return the number of sent bytes that the peer has not acknowledged."""
    return struct.unpack("i", ioctl(connection, SIOCOUTQ, bytes(4)))[0]


def bursts(size: int, host: str, rule: Sequence[str]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Let a server send bursts of ``size`` bytes, and wait for the last ACK of each. Return the counts of the server's
    kernel and those of the switch.

    ``rule``: an iptables rule that is active on ``host`` during the bursts.
    """
    with RoutedLab(DISTANCES[:1]) as place:
        door, client = (socket_in(place.pid(host), socket.AF_INET, socket.SOCK_STREAM) for host in ("server", "client"))
        with door, client:
            door.bind(("", WEB_PORT))
            door.listen()
            client.bind((DISTANCES[0].address, 0))
            client.connect((str(VIP), WEB_PORT))
            server, _ = door.accept()
            before = place.kernel()
            place.call(host, "iptables", *rule)
            with server:
                for _ in range(BURSTS):
                    server.sendall(bytes(size))
                    assert len(client.recv(size, socket.MSG_WAITALL)) == size
                    await_true("the burst is acknowledged", lambda: unacknowledged(server) == 0, PATIENCE_S)
                slot = slot_of(place.seen(), *client.getsockname())
        assert slot is not None
        counts = {name: now - before[name] for name, now in place.kernel().items()}
    print(counts, slot)
    return counts, slot


def random_packets(share: float) -> list[str]:
    """Return the iptables match that selects a share of all packets at random."""
    return ["-m", "statistic", "--mode", "random", "--probability", str(share)]


@pytest.mark.parametrize("size", [MSS, 3 * MSS], ids=["of one segment", "of three"])
def test_probes_that_a_dsack_reports_as_copies_are_no_loss_events(size: int) -> None:
    """Only ACKs are lost, so every segment that the server repeats is a duplicate. Neither kernel nor switch counts it
    as a loss event."""
    rule = ["-A", "OUTPUT", "-p", "tcp", "--dport", str(WEB_PORT), *random_packets(0.3), "-j", "DROP"]
    kernel, seen = bursts(size, "client", rule)
    assert kernel["TCPDSACKRecv"] > 0 and sum(kernel[name] for name in RECOVERIES) == 0
    assert abs(seen["probes"] - kernel["TCPLossProbes"]) <= 1 + SHARE * kernel["TCPLossProbes"]
    assert seen["losses"] <= kernel["TCPTimeouts"]


def test_copies_that_the_network_makes_are_no_retransmissions() -> None:
    """The router sends segments twice, and the receiver reports each copy by a DSACK. The switch counts hardly any of
    the copies as retransmissions or losses."""
    rule = [
        "-t",
        "mangle",
        "-A",
        "POSTROUTING",
        "-o",
        "eth0",
        "-p",
        "tcp",
        "--sport",
        str(WEB_PORT),
        *random_packets(0.3),
    ]
    kernel, seen = bursts(3 * MSS, "router", [*rule, "-j", "TEE", "--gateway", str(SERVER.gateway.ip)])
    copies = kernel["TCPDSACKRecv"] - kernel["TCPLossProbes"]
    assert copies > BURSTS / 2 and kernel["TCPTimeouts"] == 0
    assert seen["losses"] <= SHARE * copies and seen["again"] <= SHARE * copies + kernel["TCPLossProbes"]
