"""Test of the share of connections without a pin when a quarter of the connection table's slots is occupied."""

from __future__ import annotations

from harness import bulk
from harness.base import StageTest
from harness.flow import Flow
from harness.pins import Pin
from harness.plan import CLIENT, S1, WEB
from harness.slots import Tuple5
from sluice.names import Counter, DropReason, PinState, Register

TAKEN = 4
"""A quarter of the slots is occupied: in a default build, 65,536 of 2 x 131,072 slots."""
UNPINNED_SHARE = 0.012
"""Largest allowed share of connections without a pin when a quarter is occupied (p4src/common/sizes.p4)."""

LAST = 1024
"""Number of connections that begin by SYNs, after the test has written the cells of all other connections.

On Tofino an unanswered SYN's slot expires after 10 s, whatever timeouts the test sets. On Tofino's model these SYNs
take 5 s, so no slot expires during the test.
"""

LONG = 100_000
"""Timeouts in ticks: nearly two hours, so that no connection expires during the test."""


def placed(keys: list[Tuple5], slots: int) -> list[int]:
    """Return, for each connection in order of arrival, the number of its way.

    The number is 1 if the slot of the connection's first hash is free, else 2 if that of its second is free, else 0.
    """
    taken: tuple[set[int], set[int]] = (set(), set())
    ways: list[int] = []
    for key in keys:
        for way, slot in enumerate((key.slot_1 % slots, key.slot_2 % slots), start=1):
            if slot not in taken[way - 1]:
                taken[way - 1].add(slot)
                ways.append(way)
                break
        else:
            ways.append(0)
    return ways


class Full(StageTest):
    """Live connections occupy a quarter of the slots; the test writes all but the last 1,024 of these into the cells.

    The last connections begin by SYNs. The switch pins those for which one of the two hashed slots is free, and counts
    the others.
    By the hashes at most 1.2 % of all connections are not pinned.
    """

    def runTest(self) -> None:
        slots = self.switch.pipeline.schema.registers[Register.PIN_KEY_1].size
        connections = 2 * slots // TAKEN
        self.set_timers(idle=LONG, pending=LONG, answered=LONG, linger=LONG)
        self.weigh_capacity(WEB, {S1: 1})
        first = self.establishes(Flow(WEB, S1))
        (pin,) = self.pins(first.key)
        keys = [first.key, *bulk.keys(WEB, connections - 1, seed=10)]
        ways = placed(keys, slots)
        self.assertLessEqual(ways.count(0) / connections, UNPINNED_SHARE)
        old = [
            (key, Pin(way, S1.id, PinState.ESTABLISHED, pin.stamp))
            for key, way in zip(keys[1:-LAST], ways[1:-LAST], strict=True)
            if way
        ]
        self.switch.touched.update(key for key, _ in old)
        self.switch.pins.put(old)
        changes = self.flood(CLIENT, bulk.segments(WEB, S1, "S", keys[-LAST:]))
        self.assertEqual(changes[Counter.VERDICTS, DropReason.NONE], LAST)
        self.assertEqual(changes[Register.LEDGER_SYN, S1.id], LAST)
        unpinned = ways[-LAST:].count(0)
        self.assertGreater(unpinned, 0, "all of the last connections find a slot, so the test shows nothing")
        self.assertEqual(changes[Counter.UNPINNED_NEW, WEB.id], unpinned)
        self.assertEqual(changes[Counter.CLAIMED, WEB.id], LAST - unpinned)
