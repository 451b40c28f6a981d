"""How full the connection table may be."""

from __future__ import annotations

from harness import bulk
from harness.base import StageTest
from harness.plan import CLIENT, S1, WEB
from sluice.names import CONNECTION_SLOTS, Counter, DropReason, Register

CONNECTIONS = 65_536
UNPINNED_SHARE = 0.012
"""At most, of so many live connections (p4src/common/sizes.p4)."""

LONG = 100_000
"""Ticks: nearly two hours, so that none of the connections ends during the test."""


class Full(StageTest):
    """65,536 live connections in a table of default size: at most 1.2 % are not pinned, and those are counted."""

    def runTest(self) -> None:
        self.assertEqual(CONNECTION_SLOTS, 131_072)
        self.set_timers(idle=LONG, pending=LONG, answered=LONG, linger=LONG)
        self.weigh_capacity(WEB, {S1: 1})
        keys = bulk.keys(WEB, CONNECTIONS, seed=10)
        changes = self.flood(CLIENT, bulk.segments(WEB, S1, "S", keys))
        self.assertEqual(changes[Counter.VERDICTS, DropReason.NONE], CONNECTIONS)
        self.assertEqual(changes[Register.LEDGER_SYN, S1.id], CONNECTIONS)
        pinned = changes[Counter.CLAIMED, WEB.id]
        unpinned = changes[Counter.UNPINNED_NEW, WEB.id]
        self.assertEqual(pinned + unpinned, CONNECTIONS)
        self.assertLessEqual(unpinned / CONNECTIONS, UNPINNED_SHARE, f"{unpinned} connections are not pinned")
        # And by the hashes themselves: first come, first served, way 1 before way 2.
        ways: tuple[set[int], set[int]] = (set(), set())
        expected = 0
        for key in keys:
            if key.slot_1 not in ways[0]:
                ways[0].add(key.slot_1)
            elif key.slot_2 not in ways[1]:
                ways[1].add(key.slot_2)
            else:
                expected += 1
        self.assertEqual(unpinned, expected)
