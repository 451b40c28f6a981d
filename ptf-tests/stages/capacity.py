"""Stage `connections`: the share of connections without a pin in a quarter-full connection table."""

from __future__ import annotations

from harness import bulk
from harness.base import StageTest
from harness.flow import Flow
from harness.pins import Pin
from harness.plan import CLIENT, S1, WEB
from harness.slots import Tuple5
from sluice.names import Counter, DropReason, PinState, Register

TAKEN = 4
"""One of so many slots is taken: in a default build, of 2 x 131,072 slots, by 65,536 live connections."""
UNPINNED_SHARE = 0.012
"""Largest allowed share of unpinned connections among that many live ones (p4src/common/sizes.p4)."""

LAST = 1024
"""Number of the last connections, which begin by packets; the cells of the others are written. Tofino's model takes 5 s
for them; there a SYN's slot is free again after 10 s at the earliest.
"""

LONG = 100_000
"""Ticks: nearly two hours, so that no connection expires during the test."""


def placed(keys: list[Tuple5], slots: int) -> list[int]:
    """Return each connection's way by its hashes, in order of arrival, way 1 before way 2; 0: neither is free."""
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
    """A quarter of the slots is taken by live connections, all but the last of them written into the cells.

    Of the last connections the switch pins as many as the hashes leave slots for, and counts the others. By the hashes
    at most 1.2 % of all connections are not pinned.
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
