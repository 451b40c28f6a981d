"""How full the connection table may be."""

from __future__ import annotations

from harness import bulk
from harness.base import StageTest
from harness.plan import CLIENT, S1, WEB
from sluice.names import Counter, DropReason, Register

TAKEN = 4
"""One slot of so many is taken: of the 2 x 131,072 of a default build by 65,536 live connections."""
UNPINNED_SHARE = 0.012
"""At most, of so many live connections (p4src/common/sizes.p4)."""

LONG = 100_000
"""Ticks: nearly two hours, so that none of the connections ends during the test."""


class Full(StageTest):
    """A quarter of the slots taken by live connections: at most 1.2 % are not pinned, and those are counted."""

    def runTest(self) -> None:
        slots = self.switch.pipeline.schema.registers[Register.PIN_KEY_1].size
        connections = 2 * slots // TAKEN
        self.set_timers(idle=LONG, pending=LONG, answered=LONG, linger=LONG)
        self.weigh_capacity(WEB, {S1: 1})
        keys = bulk.keys(WEB, connections, seed=10)
        changes = self.flood(CLIENT, bulk.segments(WEB, S1, "S", keys))
        self.assertEqual(changes[Counter.VERDICTS, DropReason.NONE], connections)
        self.assertEqual(changes[Register.LEDGER_SYN, S1.id], connections)
        pinned = changes[Counter.CLAIMED, WEB.id]
        unpinned = changes[Counter.UNPINNED_NEW, WEB.id]
        self.assertEqual(pinned + unpinned, connections)
        self.assertLessEqual(unpinned / connections, UNPINNED_SHARE, f"{unpinned} connections are not pinned")
        # And by the hashes themselves: first come, first served, way 1 before way 2.
        ways: tuple[set[int], set[int]] = (set(), set())
        expected = 0
        for key in keys:
            place_1, place_2 = key.slot_1 % slots, key.slot_2 % slots
            if place_1 not in ways[0]:
                ways[0].add(place_1)
            elif place_2 not in ways[1]:
                ways[1].add(place_2)
            else:
                expected += 1
        self.assertEqual(unpinned, expected)
