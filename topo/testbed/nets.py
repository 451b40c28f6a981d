"""Nets for tests and figures of one switch: a namespace each host, the embedded switch, users at several distances.

```
 host --- port 1 sluice port 2 --- host, which holds what its users send for the time that they are away
```
Unlike `ground` it needs no Mininet: hosts have no names of their own to be found by.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from topo.testbed import REPOSITORY
from topo.testbed.namespaces import OFFLOADS
from topo.testbed.processes import Process, await_true, before_all_else, run_in
from topo.testbed.switches import EMBEDDED, Endpoints

GRPC_PORT = 9559
"""Of the switch, in its own namespace."""
READY_S = 30.0
SWITCH = "switch"
_TABLE = "100"
_DEVICE = "delay0"


class Net:
    """A context manager; a net says in `build` what it consists of, and all of it ends with the net."""

    def __init__(self, prefix: str) -> None:
        self.stack = ExitStack()
        self._prefix = prefix
        self._pids: dict[str, int] = {}
        self._runs = 0

    def build(self) -> None:
        """Lay cables, start programs."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self.directory = Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix=self._prefix)))
            self.directory.chmod(0o755)  # for a web server's own user
            self.build()
        except BaseException:
            self.stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def pid(self, name: str) -> int:
        """Return a process in a host's namespace, or in the switch's."""
        return self._pids[name]

    def start(self, name: str, argv: Sequence[str], inside: str | None = None) -> Process:
        """Start a program, in a host's namespace; it ends with the net at the latest."""
        self._runs += 1
        process = Process(
            name,
            argv,
            log=self.directory / f"{name}-{self._runs}.txt",
            namespace_pid=self._pids[inside] if inside else None,
            directory=REPOSITORY,
        )
        self.stack.callback(process.stop)
        return process

    # -- what a net consists of

    def hosts(self, names: Iterable[str]) -> None:
        """A namespace each."""
        ours = Path("/proc/self/ns/net").readlink()
        for name in names:
            self._pids[name] = self.start(name, ["unshare", "--net", "sleep", "7200"]).pid
        for name, pid in self._pids.items():
            there = Path(f"/proc/{pid}/ns/net")
            await_true(f"namespace of {name}", lambda there=there: there.readlink() != ours, READY_S)
            run_in(pid, ["ip", "link", "set", "lo", "up"])

    def cable(self, ends: Mapping[str, str]) -> None:
        """Between the interfaces of two hosts, by host; without offloads, so that a frame is a segment."""
        (one, name), (other, other_name) = ends.items()
        peer = ["peer", "name", other_name, "netns", str(self.pid(other))]
        run_in(self.pid(one), ["ip", "link", "add", name, "type", "veth", *peer])
        for host, end in ends.items():
            run_in(self.pid(host), ["ethtool", "-K", end, *(word for one in OFFLOADS[:6] for word in (one, "off"))])
            run_in(self.pid(host), ["sysctl", "-qw", f"net.ipv6.conf.{end}.disable_ipv6=1"])
            run_in(self.pid(host), ["ip", "link", "set", end, "up"])

    def attach(self, host: str, port: int, mac: str, address: str, gateway_mac: str | None = None) -> None:
        """A host's `eth0` at a port of the switch, which is the first address of its /24.

        With ``gateway_mac`` the host need not ask for it: a switch without a controller does not answer.
        """
        self.cable({host: "eth0", SWITCH: f"port{port}"})
        there, gateway = self.pid(host), address.rsplit(".", 1)[0] + ".1"
        run_in(there, ["ip", "link", "set", "eth0", "address", mac])
        run_in(there, ["ip", "address", "add", f"{address}/24", "dev", "eth0"])
        if gateway_mac:
            neighbour = ["add", gateway, "lladdr", gateway_mac, "dev", "eth0", "nud", "permanent"]
            run_in(there, ["ip", "neighbour", *neighbour])
        run_in(there, ["ip", "route", "add", "default", "via", gateway])

    def serve(self, ports: Iterable[int]) -> None:
        """Start the embedded switch at these ports, before all else that wants the processor."""
        endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", self.directory)
        command = EMBEDDED.command(EMBEDDED.find(), {port: f"port{port}" for port in ports}, endpoints)
        EMBEDDED.await_serving(self.start("sluice-switch", before_all_else(command), SWITCH), endpoints, READY_S)

    def delay(self, host: str, delays_s: Mapping[str, float]) -> None:
        """Give a host users' addresses, or networks (A.B.0.0/16), each of a /16 of its own. What they send is held for
        so long."""
        pid = self.pid(host)
        classes = [f"{'.'.join(one.split('.')[:2])}.0.0/16={delay_s:.6f}" for one, delay_s in delays_s.items()]
        words = [word for one in classes for word in ("--class", one)]
        command = [sys.executable, "-m", "topo.load.delay", "--device", _DEVICE, *words]
        self.start("delay", before_all_else(command), host).await_output("ready", READY_S)
        settings = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", f"net.ipv4.conf.{_DEVICE}.rp_filter=0")
        run_in(pid, ["sysctl", "-qw", *settings, f"net.ipv4.conf.{_DEVICE}.accept_local=1"])
        run_in(pid, ["ip", "link", "set", _DEVICE, "txqueuelen", "20000", "up"])
        run_in(pid, ["ip", "route", "add", "default", "dev", _DEVICE, "table", _TABLE])
        for address in delays_s:
            run_in(pid, ["ip", "route", "add", "local", address, "dev", "lo"])
            run_in(pid, ["ip", "rule", "add", "from", address, "iif", "lo", "lookup", _TABLE])
