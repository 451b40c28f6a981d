"""The bottleneck: a token bucket filter on the switch's port towards the clients, and what it has counted.

The switch's packets meet it because they are sent through the interface's queueing discipline.  A bucket of several
packets would let short answers jump the link (they would seem to come at the speed of memory), hence a frame or two.
"""

from __future__ import annotations

import json
from typing import Any

from topo.plan.crowd.samples import LinkCounts
from topo.plan.crowd.settings import FRAME_BYTES, Settings
from topo.testbed.errors import SetupError
from topo.testbed.processes import run_in


def set_bottleneck(namespace_pid: int, interface: str, settings: Settings) -> None:
    """Make an interface the bottleneck."""
    rate = round(settings.link_bit_per_s * settings.k)
    burst, limit = settings.burst_frames * FRAME_BYTES, settings.queue_frames * FRAME_BYTES
    bucket = ["tbf", "rate", f"{rate}bit", "burst", f"{burst}b", "limit", f"{limit}b"]
    run_in(namespace_pid, ["tc", "qdisc", "replace", "dev", interface, "root", *bucket])


def read_bottleneck(namespace_pid: int, interface: str) -> LinkCounts:
    """Read the filter's counts; raise SetupError if there is none."""
    return parse_counts(run_in(namespace_pid, ["tc", "-s", "-j", "qdisc", "show", "dev", interface]), interface)


def parse_counts(text: str, interface: str) -> LinkCounts:
    """Read what `tc -s -j qdisc show` printed; raise SetupError if no token bucket filter is in it."""
    found: list[dict[str, Any]] = json.loads(text)
    for one in found:
        if one.get("kind") == "tbf":
            return LinkCounts(one["packets"], one["bytes"], one["drops"])
    raise SetupError(f"{interface} has no token bucket filter: somebody has taken the bottleneck away")
