"""How far the clients are away: by netem where the kernel has it, else by a delay line of our own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from topo.news.plan import CLIENTS
from topo.processes import Process, command_in, run_in
from topo.switches import REPOSITORY

DEVICE = "delay0"
TABLE = "100"
QUEUE_PACKETS = "20000"
READY_TIMEOUT_S = 10.0


def set_distances(
    router_pid: int,
    interfaces: dict[str, str],
    k: float,
    log: Path,
    at_end: Callable[[Callable[[], object]], object],
) -> str:
    """Put every client host at its distance, divided by `k`, and return by what.

    `interfaces` gives r1's interface towards each client host.
    """
    if all(_netem(router_pid, interfaces[one.name], one.round_trip_s / k) for one in CLIENTS):
        return "netem"
    if not Path("/dev/net/tun").exists():
        return "none: the kernel has neither netem nor TUN devices, so round trips are the queue's only"
    classes = [word for one in CLIENTS for word in ("--class", f"{one.pool}={one.round_trip_s / k:.6f}")]
    line = Process(
        "delay line",
        [sys.executable, "-m", "topo.load.delay", "--device", DEVICE, *classes],
        log=log,
        namespace_pid=router_pid,
        directory=REPOSITORY,
    )
    at_end(line.stop)
    line.await_output("ready", READY_TIMEOUT_S)
    run_in(router_pid, ["ip", "link", "set", DEVICE, "txqueuelen", QUEUE_PACKETS, "up"])
    run_in(router_pid, ["ip", "route", "add", "default", "dev", DEVICE, "table", TABLE])
    for one in CLIENTS:
        run_in(router_pid, ["ip", "rule", "add", "iif", interfaces[one.name], "lookup", TABLE])
    return "a delay line in user space (the kernel has no netem)"


def _netem(router_pid: int, interface: str, delay_s: float) -> bool:
    delay = ["netem", "delay", f"{delay_s * 1e6:.0f}us", "limit", QUEUE_PACKETS]
    command = command_in(["tc", "qdisc", "add", "dev", interface, "root", *delay], namespace_pid=router_pid)
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
