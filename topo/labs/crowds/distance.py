"""How far the clients are away: by netem where the kernel has it, else by a delay line of our own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from topo.plan.crowd.network import CLIENTS
from topo.plan.crowd.settings import Settings
from topo.testbed import REPOSITORY
from topo.testbed.processes import Process, command_in, run_in

TUN = Path("/dev/net/tun")
DEVICE = "delay0"
TABLE = "100"
QUEUE_PACKETS = "20000"
READY_TIMEOUT_S = 10.0


def set_distances(
    router_pid: int,
    interfaces: dict[str, str],
    settings: Settings,
    log: Path,
    at_end: Callable[[Callable[[], object]], object],
) -> str:
    """Put every client host at its distance, divided by k, and return by what, and by what packets are lost on it.

    `interfaces` gives r1's interface towards each client host.
    """
    lossless = ", without the loss that was asked for: that needs netem" if settings.loss else ""
    if _netem(router_pid, {interfaces[one.name]: one.round_trip_s / settings.k for one in CLIENTS}, settings.loss):
        return f"netem, loss {settings.loss:.2%}" if settings.loss else "netem"
    if not TUN.exists():
        return f"none: the kernel has neither netem nor TUN devices, so round trips are the queue's only{lossless}"
    classes = [word for one in CLIENTS for word in ("--class", f"{one.pool}={one.round_trip_s / settings.k:.6f}")]
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
    return f"a delay line in user space (the kernel has no netem){lossless}"


def _netem(router_pid: int, delays_s: Mapping[str, float], loss: float) -> bool:
    """Set netem on every interface; where one refuses it, on none."""
    for number, (interface, delay_s) in enumerate(delays_s.items()):
        delay = ["netem", "delay", f"{delay_s * 1e6:.0f}us", "limit", QUEUE_PACKETS]
        lost = ["loss", f"{100 * loss:g}%"] if loss else []
        command = command_in(["tc", "qdisc", "add", "dev", interface, "root", *delay, *lost], namespace_pid=router_pid)
        if subprocess.run(command, capture_output=True, check=False).returncode:
            for done in list(delays_s)[:number]:
                run_in(router_pid, ["tc", "qdisc", "del", "dev", done, "root"])
            return False
    return True
