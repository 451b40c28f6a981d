"""Where measured transfers are held against TCP itself: a server, the switch, a client that is at several distances.

```
 server 10.0.2.2 --- 2 sluice 1 --- 10.0.1.2 client, 10.101.0.1, 10.102.0.1, ...
                                    loses segments as they come in; holds its own for the time that it is away
```
A switch without a controller: the figures read its cells as a controller does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sluice.addresses import from_text
from sluice.dataplane.connection import Connection
from sluice.dataplane.transfers import flow_index
from sluice.replay.capture import read_capture

from experiments.lossevents import losses
from experiments.sabtnet import CLIENT, MACS, PORT, SERVER, VIP, Distance
from experiments.tcptrace import traced
from topo.testbed.nets import READY_S, SWITCH, Net
from topo.testbed.processes import run_in

KERNEL = ("TCPTimeouts", "TCPLossProbes", "TCPLossProbeRecovery", "TCPSackRecovery", "TCPRenoRecovery", "TCPDSACKRecv")
GRACE_S = 30.0
RATE = 600_000
"""Bytes per second of a connection at most: the delay line is a program."""


class MeasuredPlace(Net):
    """A switch between a server and a client."""

    names: Sequence[str] = (SWITCH, "client", "server")
    """Hosts; the second is the switch's neighbour."""
    loses: tuple[str, str] = ("client", "INPUT")
    """Where segments of the server's get lost: host, and chain of its packet filter."""

    def __init__(self, distances: Sequence[Distance]) -> None:
        super().__init__("sabt-")
        self.distances = distances

    # -- building

    def build(self) -> None:
        """See Net."""
        self.hosts(self.names)
        self.attach(self.names[1], 1, MACS["cli"], CLIENT, MACS["sw1"])
        self.attach("server", 2, MACS["srv"], SERVER, MACS["sw2"])
        self._far()
        self.serve((1, 2))
        self._control()

    def _far(self) -> None:
        """What lies behind the switch's neighbour."""
        self.delay("client", {one.address: one.delay_s for one in self.distances})

    def _control(self) -> None:
        """Program the switch."""
        self._switch("program")

    def _switch(self, what: str) -> str:
        """What a program in the switch's namespace says, in its last line."""
        command = [sys.executable, "-m", "experiments.sabtswitch", what]
        process = self.start("control", command, SWITCH)
        if process.wait(READY_S):
            process.require_running()
        return (process.output().splitlines() or [""])[-1]

    # -- running

    def run(self, congestion: str, loss: float, seconds: float) -> dict[str, Any]:
        """Every connection: what the switch, the kernel and a capture say of it; and the kernel's counts of all."""
        capture = self.directory / "sent.pcap"
        dump = ["tcpdump", "-i", "eth0", "-s", "96", "-B", "16384", "-w", str(capture), f"tcp and host {SERVER}"]
        recorder = self.start("tcpdump", dump, "server")
        with ExitStack() as ends:
            ends.callback(recorder.stop)
            recorder.await_output("listening", READY_S)
            sent = self.sent(congestion, loss, seconds)
        captured = losses(
            (one.time_s, one.destination_port, one.sequence, one.payload)
            for one in read_capture(capture)
            if one.source_port == PORT
        )
        told_by_tcptrace = traced(capture, PORT)
        capture.unlink()
        for one in sent["transfers"]:
            of = captured[one["port"]]
            one["captured"] = {name: getattr(of, name) for name in ("segments", "again", "events")}
            one["tcptrace"] = asdict(told_by_tcptrace[one["port"]])
        return sent

    def sent(self, congestion: str, loss: float, seconds: float) -> dict[str, Any]:
        """Every connection: what the switch and the kernel say of it; and the kernel's counts of all."""
        before = self.kernel()
        total = sum(one.connections for one in self.distances)
        host, chain = self.loses
        rule = ["-p", "tcp", "--sport", str(PORT), "-m", "statistic", "--mode", "random", "--probability", str(loss)]
        with ExitStack() as ends:
            if loss:
                run_in(self.pid(host), ["iptables", "-A", chain, *rule, "-j", "DROP"])
                ends.callback(run_in, self.pid(host), ["iptables", "-D", chain, *rule, "-j", "DROP"])
            options = {"port": PORT, "connections": total, "congestion": congestion, "rate": RATE, "seconds": seconds}
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            sender = self.start("sender", [sys.executable, "-m", "experiments.sabtsender", *words], "server")
            ends.callback(sender.stop)
            sender.await_output("listening", READY_S)
            sources = [f"{one.address}={one.connections}" for one in self.distances]
            command = [sys.executable, "-m", "experiments.sabtreceiver", "--to", f"{VIP}:{PORT}", *sources]
            receiver = self.start("receiver", command, "client")
            ends.callback(receiver.stop)
            sender.wait(seconds + GRACE_S)
            seen = self.seen()
        reported = json.loads(sender.output().splitlines()[-1])
        transfers = [{**one, "switch": slot_of(seen, one["client"], one["port"])} for one in reported]
        return {"transfers": transfers, "kernel": {name: now - before[name] for name, now in self.kernel().items()}}

    def seen(self) -> Sequence[Mapping[str, Any]]:
        """The columns of all of the switch's slots that have a transfer."""
        return json.loads(self._switch("read"))

    def kernel(self) -> dict[str, int]:
        """What the server's kernel counts (/proc/net/netstat)."""
        names, values = Path(f"/proc/{self.pid('server')}/net/netstat").read_text().splitlines()[:2]
        counts = dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
        return {name: counts[name] for name in KERNEL}


def slot_of(seen: Sequence[Mapping[str, Any]], client: str, port: int) -> Mapping[str, Any] | None:
    """What the switch has measured of a connection; None if another connection has its slot."""
    place = Connection(from_text(client).packed, port, from_text(VIP).packed, PORT).place
    numbers = {flow_index(0, place.slot_1), flow_index(1, place.slot_2)}
    mine = (one for one in seen if one["fingerprint"] == place.fingerprint and one["flow"] in numbers)
    return next(mine, None)
