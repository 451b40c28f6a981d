"""The links of the network in Chen & Heidemann's Figure 17: the bottleneck, and the clients' distances.

The bottleneck is a token bucket filter on the switch's port towards the clients; the switch sends through the
interface's queueing discipline. The bucket has room for a frame or two only, because a larger bucket would send short
answers faster than the link's rate. The clients' distances are delays by netem if the kernel has it, else by a delay
line in user space.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topo.plan.crowd.network import CLIENTS, ROUTER
from topo.plan.crowd.readings import LinkCounts
from topo.plan.crowd.scenarios import FRAME_BYTES, Settings
from topo.testbed.errors import SetupError
from topo.testbed.network import DELAY_QUEUE, DELAY_TABLE, Network
from topo.testbed.processes import command_in, run_in

TUN = Path("/dev/net/tun")


def set_bottleneck(namespace_pid: int, interface: str, settings: Settings) -> None:
    """Limit an interface to the bottleneck's rate, multiplied by the time compression k, and to the length of the
    bottleneck's queue."""
    rate = round(settings.link_bit_per_s * settings.k)
    burst, limit = settings.burst_frames * FRAME_BYTES, settings.queue_frames * FRAME_BYTES
    bucket = ["tbf", "rate", f"{rate}bit", "burst", f"{burst}b", "limit", f"{limit}b"]
    run_in(namespace_pid, ["tc", "qdisc", "replace", "dev", interface, "root", *bucket])


def read_bottleneck(namespace_pid: int, interface: str) -> LinkCounts:
    """Read the counters of the interface's token bucket filter; raise SetupError if the interface has no such
    filter."""
    return parse_counts(run_in(namespace_pid, ["tc", "-s", "-j", "qdisc", "show", "dev", interface]), interface)


def parse_counts(text: str, interface: str) -> LinkCounts:
    """Parse the output of `tc -s -j qdisc show`; raise SetupError if the output has no token bucket filter."""
    disciplines: list[dict[str, Any]] = json.loads(text)
    for discipline in disciplines:
        if discipline.get("kind") == "tbf":
            return LinkCounts(discipline["packets"], discipline["bytes"], discipline["drops"])
    raise SetupError(f"{interface} has no token bucket filter: another program has removed the bottleneck")


def set_distances(lab: Network, interfaces: Mapping[str, str], settings: Settings) -> str:
    """Delay the packets of every client host by the host's distance divided by k; return a description of how delay and
    loss are made.

    `interfaces` maps each client host to the interface of router r1 towards that host. A kernel with neither netem nor
    TUN devices delays nothing.
    """
    lossless = ", without the loss that was asked for: that needs netem" if settings.loss else ""
    delays_s = {interfaces[host.name]: host.round_trip_s / settings.k for host in CLIENTS}
    if _netem(lab.pid(ROUTER.name), delays_s, settings.loss):
        return f"netem, loss {settings.loss:.2%}" if settings.loss else "netem"
    if not TUN.exists():
        return f"none: the kernel has neither netem nor TUN devices, so round trips are the queue's only{lossless}"
    lab.start_delay(ROUTER.name, {str(host.pool): host.round_trip_s / settings.k for host in CLIENTS})
    for client in CLIENTS:
        lab.call(ROUTER.name, "ip", "rule", "add", "iif", interfaces[client.name], "lookup", DELAY_TABLE)
    return f"a delay line in user space (the kernel has no netem){lossless}"


def _netem(router_pid: int, delays_s: Mapping[str, float], loss: float) -> bool:
    """Set netem on every interface, and return True. If one interface refuses netem, set it on no interface and return
    False."""
    for number, (interface, delay_s) in enumerate(delays_s.items()):
        delay = ["netem", "delay", f"{delay_s * 1e6:.0f}us", "limit", DELAY_QUEUE]
        losses = ["loss", f"{100 * loss:g}%"] if loss else []
        command = command_in(
            ["tc", "qdisc", "add", "dev", interface, "root", *delay, *losses], namespace_pid=router_pid
        )
        if subprocess.run(command, capture_output=True, check=False).returncode:
            for done in list(delays_s)[:number]:
                run_in(router_pid, ["tc", "qdisc", "del", "dev", done, "root"])
            return False
    return True
