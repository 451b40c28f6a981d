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
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from sluice.addresses import from_text
from sluice.dataplane.connection import Connection
from sluice.dataplane.transfers import flow_index
from sluice.replay.capture import read_capture

from experiments.lossevents import losses
from experiments.sabtnet import CLIENT, GRPC, MACS, PORT, SERVER, VIP, Distance
from testbed.namespaces import OFFLOADS
from testbed.processes import Process, await_true, run_in
from testbed.switches import KINDS, Endpoints
from topo.realtime import before_all_else
from topo.switches import REPOSITORY

KERNEL = ("TCPTimeouts", "TCPLossProbes", "TCPSackRecovery", "TCPRenoRecovery")
TABLE = "100"
READY_S = 20.0
GRACE_S = 30.0
RATE = 600_000
"""Bytes per second of a connection at most: the delay line is a program."""


class MeasuredPlace:
    """A context manager."""

    hosts: Sequence[str] = ("switch", "client", "server")
    """Namespaces; the second is the switch's neighbour."""

    def __init__(self, distances: Sequence[Distance]) -> None:
        self.distances = distances
        self._stack = ExitStack()
        self._pids: dict[str, int] = {}
        self._runs = 0

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # -- building

    def _build(self) -> None:
        self.directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sabt-")))
        for name in self.hosts:
            self._pids[name] = self._start(name, ["unshare", "--net", "sleep", "7200"]).pid
        for name in self._pids:
            self._wait_for_namespace(name)
        self._link(self.hosts[1], "cli", "sw1", CLIENT, "10.0.1.1")
        self._link("server", "srv", "sw2", SERVER, "10.0.2.1")
        self._delay()
        kind = KINDS["embedded"]
        endpoints = Endpoints(GRPC, self.directory)
        command = before_all_else(kind.command(kind.find(), {1: "sw1", 2: "sw2"}, endpoints))
        switch = self._start("sluice", command, "switch")
        kind.await_serving(switch, endpoints, READY_S)
        self._control()

    def _control(self) -> None:
        """Program the switch."""
        self._switch("program")

    def _switch(self, what: str) -> str:
        """What a program in the switch's namespace says, in its last line."""
        command = [sys.executable, "-m", "experiments.sabtswitch", what]
        process = self._start("control", command, "switch")
        if process.wait(READY_S):
            process.require_running()
        return (process.output().splitlines() or [""])[-1]

    def _start(self, name: str, argv: Sequence[str], inside: str | None = None) -> Process:
        process = Process(
            name,
            argv,
            log=self.directory / f"{name}-{self._runs}.txt",
            namespace_pid=self._pids[inside] if inside else None,
            directory=REPOSITORY,
        )
        self._stack.callback(process.stop)
        return process

    def _wait_for_namespace(self, name: str) -> None:
        ours = Path("/proc/self/ns/net").readlink()
        there = Path(f"/proc/{self._pids[name]}/ns/net")
        process = self._pids[name]
        await_true(f"namespace of process {process}", lambda: there.readlink() != ours, READY_S)
        run_in(process, ["ip", "link", "set", "lo", "up"])

    def _link(self, host: str, end: str, port: str, address: str, gateway: str) -> None:
        """A cable between a host and the switch, without offloads: a frame is a segment."""
        switch, there = self._pids["switch"], self._pids[host]
        run_in(switch, ["ip", "link", "add", port, "type", "veth", "peer", "name", end, "netns", str(there)])
        for pid, name in ((switch, port), (there, end)):
            run_in(pid, ["sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1"])
            run_in(pid, ["ip", "link", "set", name, "address", MACS[name], "up"])
            run_in(pid, ["ethtool", "-K", name, *(word for one in OFFLOADS[:6] for word in (one, "off"))])
        run_in(there, ["ip", "address", "add", f"{address}/24", "dev", end])
        run_in(there, ["ip", "neighbour", "add", gateway, "lladdr", MACS[port], "dev", end, "nud", "permanent"])
        run_in(there, ["ip", "route", "add", "default", "via", gateway])

    def _delay(self) -> None:
        """What the client sends is held, by the address that it sends from."""
        client = self._pids["client"]
        classes = [f"{'.'.join(one.address.split('.')[:2])}.0.0/16={one.delay_s:.6f}" for one in self.distances]
        words = [word for one in classes for word in ("--class", one)]
        command = [sys.executable, "-m", "topo.load.delay", "--device", "delay0", *words]
        self._start("delay", before_all_else(command), "client").await_output("ready", READY_S)
        settings = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.delay0.rp_filter=0")
        run_in(client, ["sysctl", "-qw", *settings, "net.ipv4.conf.delay0.accept_local=1"])
        run_in(client, ["ip", "link", "set", "delay0", "txqueuelen", "20000", "up"])
        run_in(client, ["ip", "route", "add", "default", "dev", "delay0", "table", TABLE])
        for one in self.distances:
            run_in(client, ["ip", "address", "add", f"{one.address}/32", "dev", "lo"])
            run_in(client, ["ip", "rule", "add", "from", one.address, "iif", "lo", "lookup", TABLE])

    # -- running

    def run(self, congestion: str, loss: float, seconds: float) -> dict[str, Any]:
        """Every connection: what the switch, the kernel and a capture say of it; and the kernel's counts of all."""
        self._runs += 1
        before = self._kernel()
        total = sum(one.connections for one in self.distances)
        capture = self.directory / f"{self._runs}.pcap"
        rule = ["-p", "tcp", "--sport", str(PORT), "-m", "statistic", "--mode", "random", "--probability", str(loss)]
        with ExitStack() as ends:
            if loss:
                run_in(self._pids["client"], ["iptables", "-A", "INPUT", *rule, "-j", "DROP"])
                ends.callback(run_in, self._pids["client"], ["iptables", "-D", "INPUT", *rule, "-j", "DROP"])
            dump = ["tcpdump", "-i", "srv", "-s", "96", "-B", "16384", "-w", str(capture), "tcp", "and", "src", SERVER]
            recorder = self._start("tcpdump", dump, "server")
            ends.callback(recorder.stop)
            recorder.await_output("listening", READY_S)
            options = {"port": PORT, "connections": total, "congestion": congestion, "rate": RATE, "seconds": seconds}
            words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
            sender = self._start("sender", [sys.executable, "-m", "experiments.sabtsender", *words], "server")
            ends.callback(sender.stop)
            sender.await_output("listening", READY_S)
            sources = [f"{one.address}={one.connections}" for one in self.distances]
            command = [sys.executable, "-m", "experiments.sabtreceiver", "--to", f"{VIP}:{PORT}", *sources]
            receiver = self._start("receiver", command, "client")
            ends.callback(receiver.stop)
            sender.wait(seconds + GRACE_S)
            seen = json.loads(self._switch("read"))
            recorder.stop()
        told = json.loads(sender.output().splitlines()[-1])
        captured = losses(
            (one.time_s, one.destination_port, one.sequence, one.payload) for one in read_capture(capture)
        )
        capture.unlink()
        transfers = [
            {
                **one,
                "captured": {name: getattr(captured[one["port"]], name) for name in ("segments", "again", "events")},
                "switch": _of(seen, one["client"], one["port"]),
            }
            for one in told
        ]
        return {"transfers": transfers, "kernel": {name: now - before[name] for name, now in self._kernel().items()}}

    def _kernel(self) -> dict[str, int]:
        """What the server's kernel counts (/proc/net/netstat)."""
        names, values = Path(f"/proc/{self._pids['server']}/net/netstat").read_text().splitlines()[:2]
        counts = dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
        return {name: counts[name] for name in KERNEL}


def _of(seen: Sequence[Mapping[str, Any]], client: str, port: int) -> Mapping[str, Any] | None:
    """A connection's slot; None if another connection has it."""
    place = Connection(from_text(client).packed, port, from_text(VIP).packed, PORT).place
    numbers = {flow_index(0, place.slot_1), flow_index(1, place.slot_2)}
    mine = (one for one in seen if one["fingerprint"] == place.fingerprint and one["flow"] in numbers)
    return next(mine, None)
