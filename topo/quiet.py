"""The switch's packet counts at a moment when nothing is on its way."""

from __future__ import annotations

from collections.abc import Callable

from testbed.processes import await_true
from topo.conservation import PacketCounts

QUIET_TIMEOUT_S = 10.0


def quiet_counts(read: Callable[[], PacketCounts]) -> PacketCounts:
    """Return what `read` finds once two readings are equal; raise LabError if they never are."""
    readings = [read(), read()]

    def quiet() -> bool:
        readings.append(read())
        return readings[-1] == readings[-2]

    await_true("no packets at the switch", quiet, QUIET_TIMEOUT_S)
    return readings[-1]
