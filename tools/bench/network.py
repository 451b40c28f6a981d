"""Starts and programs a forwarder, which forwards packets from one link of a load host to the other link."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tools.bench.addresses import PORT, ROUTER_MACS, VIP
from tools.bench.cases import PIPELINES, Case
from tools.bench.forwarders import KernelDnat, kind_of
from tools.bench.load import Load, trial
from tools.bench.program import order
from tools.bench.search import LOSS, Trial
from topo.testbed.errors import SetupError
from topo.testbed.mininet import Mininet
from topo.testbed.namespaces import interface_packets
from topo.testbed.nodes import LabHost, ProcessSwitch
from topo.testbed.processes import await_true, run_in

ROOT = Path(__file__).resolve().parents[2]
LARGE_BUILD = ROOT / "p4src/build/large"
SETTLED_TIMEOUT_S = 30.0
OPENING_RATES = {"bmv2": 8_000.0}
OPENING_RATE = 100_000.0
OPENING_TRIES = 3
FRESH = 4_000_000
"""The numbers of connections from this one on are used in only one trial each, so that the forwarder does not have an
entry for the connection yet."""


class Bench:
    """A forwarder under load."""

    def __init__(self, who: str, directory: Path, stack: ExitStack) -> None:
        self.who, self.directory = who, directory
        network = Mininet(controller=None)
        stack.callback(network.stop)
        self.host = network.addHost("load", cls=LabHost, ip=None)
        self.switch = network.addSwitch("sw", cls=kind_of(who), directory=directory)
        for port in (1, 2):
            network.addLink(self.host, self.switch, port1=port, port2=port)
        assert isinstance(self.switch, ProcessSwitch | KernelDnat)
        stack.callback(self.switch.stop_process)
        network.start()
        out, self.into = (self.host.intfs[port].name for port in (1, 2))
        self.load = Load(self.host.pid, out, self.into, directory)
        # Without an IP address, the load host's kernel answers no frames.
        for interface in (out, self.into):
            run_in(self.host.pid, ["ip", "address", "flush", "dev", interface])
        self.fresh = FRESH
        self.opened = 0
        self.programmed = False

    @property
    def pid(self) -> int:
        """Process id of the forwarder, which must be a process."""
        assert isinstance(self.switch, ProcessSwitch)
        assert self.switch.process is not None
        return self.switch.process.pid

    def program(self, servers: int, entries: int, *, large: bool) -> None:
        """Configure the forwarder as a balancer over `servers` servers; a second call only adds route entries. The
        copy-forward loop needs no configuration."""
        if isinstance(self.switch, KernelDnat):
            self.switch.program(servers, entries)
        elif self.who in PIPELINES:
            assert isinstance(self.switch, ProcessSwitch)
            content = order(
                servers=servers,
                entries=entries,
                thrift=self.switch.thrift,
                pipeline=LARGE_BUILD if large else None,
                fresh=not self.programmed,
            )
            path = self.directory / "order.json"
            path.write_text(json.dumps(content))
            run_in(self.switch.pid, [sys.executable, "-m", "tools.bench.program", str(path)], timeout_s=120)
        self.programmed = True

    def frame(self, case: Case, flags: str) -> Path:
        """Return the template frame of the case's connections."""
        return self.load.frame(ROUTER_MACS[0], (VIP, PORT), flags, case.frame)

    def open(self, connections: int) -> None:
        """Open further connections until the total is `connections`. Raises SetupError if their frames are lost."""
        if self.who == "copy-forward" or connections <= self.opened:
            return
        # Connection tracking regards a connection that begins with an ACK as established. After an unanswered SYN it
        # would not translate the later segments.
        flags = "A" if self.who == "kernel-dnat" else "S"
        frame = self.frame(Case(), flags)
        rate = OPENING_RATES.get(self.who, OPENING_RATE)
        count = connections - self.opened
        best = 0
        for _ in range(OPENING_TRIES):
            # All connections are opened again after a loss. A repeated SYN leaves the connection's pin (its entry in
            # the connection table) unchanged.
            best = max(best, self.offer(frame, self.opened, count, rate, count / rate).received)
            if best >= count * (1 - LOSS):
                self.opened = connections
                return
        raise SetupError(f"{self.who}: of {count} connections only {best} came through")

    def received(self) -> int:
        """Return the number of frames that the load host has received from the forwarder so far."""
        return interface_packets(self.host.pid)[self.into][0]

    def offer(self, frame: Path, first: int, count: int, rate: float, seconds: float) -> Trial:
        """Send frames at `rate` (frames/s) for `seconds`, and wait until the forwarder sends no more frames."""
        before = self.received()
        sent, took = self.load.flood(frame, first, count, rate, seconds)
        counted = [-1, self.received()]

        def settled() -> bool:
            counted.append(self.received())
            return counted[-1] == counted[-2] == counted[-3]

        await_true("the last frame has come out", settled, SETTLED_TIMEOUT_S)
        return trial(sent, counted[-1] - before, took)

    def take_fresh(self, count: int) -> int:
        """Reserve `count` unused connection numbers; return the first of them."""
        first = self.fresh
        self.fresh += count
        return first


@contextmanager
def bench(who: str) -> Generator[Bench]:
    """Run a forwarder in its network; remove both afterwards."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-bench-")))
        yield Bench(who, directory, stack)
