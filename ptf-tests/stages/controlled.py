"""Test of flash-crowd control: the controller's own code decides from the switch's counts, and sets a meter there."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from harness import entries
from harness.base import StageTest
from harness.frames import IP, TCP, layers, octets
from harness.plan import CLIENT, CLIENT_HOST, S1_HOST
from harness.probes import ether
from sluice.addresses import from_text
from sluice.names import Meter, Register
from sluice.news import Decision, News, NewsMode, NewsOptions, Observation, Requests
from sluice.switch.admission import entry
from sluice.switch.bucket import Bucket

HOT = 1
"""Number of the destination in the switch."""
TARGET = from_text(S1_HOST.address).packed
COUNTS = [(cell, HOT) for cell in (Register.REQUESTS_OFFERED, Register.REQUESTS_ADMITTED, Register.REQUESTS_REFUSED)]
REFUSED = COUNTS[2]
QUIET, CROWD = 64, 640
"""Requests in an interval of 64 s before and in the crowd.

The test does not wait for the interval; only the times in its observations advance.
"""
FAST_BPS, SLOW_BPS = 1e6, 1e4
"""Rates of responses before and in the crowd; no server answers, so the test chooses these rates."""


class Controlled(StageTest):
    """The limit of a crowd starts at the rate of admitted requests.

    The switch enforces the limit until it is removed, even while responses are fast again.
    """

    def setUp(self) -> None:
        super().setUp()
        self.watch(S1_HOST.address, HOT)
        self.news = News(NewsOptions(mode=NewsMode.PAPER))
        self.observed = 0
        self.base = self.switch.registers.read(COUNTS)
        self.addCleanup(self.switch.modify, [entries.unmetered(Meter.DESTINATION_LIMIT, HOT)])

    def request(self, count: int) -> int:
        """Send `count` SYNs; return how many SYNs the switch refused."""
        syn = cast(Any, TCP)(sport=50000, dport=22, flags="S", seq=1000)
        frame = octets(layers(ether(CLIENT_HOST), IP(src=CLIENT_HOST.address, dst=S1_HOST.address), syn))
        return self.burst(CLIENT, [frame] * count).changes.get(REFUSED, 0)

    def observe(self, rate_bps: float, samples: int = 0) -> Decision | None:
        """Pass an interval to flash-crowd control: requests counted by the switch, and ten responses of one rate.

        `samples`: the number of sampled packets to the destination.
        """
        time_s = self.observed * self.news.options.period_s
        self.observed += 1
        counted = (now - before for now, before in zip(self.switch.registers.read(COUNTS), self.base, strict=True))
        requests = {TARGET: Requests(*counted)}
        return self.news.observe(Observation(time_s, np.full(10, rate_bps), requests, samples=[TARGET] * samples))

    def write(self, decision: Decision | None) -> None:
        """Set the switch's meter to the decision's limit, as the controller does."""
        assert decision is not None
        limit = decision.limits[TARGET]
        self.switch.modify([entry(Meter.DESTINATION_LIMIT, HOT, Bucket.rounded(limit.rate, limit.burst))])

    def runTest(self) -> None:
        self.assertIsNone(self.observe(FAST_BPS))
        for _ in range(2):
            self.assertEqual(self.request(QUIET), 0)
            quiet = self.observe(FAST_BPS)
            assert quiet is not None
            self.assertFalse(quiet.limits)

        self.assertEqual(self.request(CROWD), 0)
        alarm = self.observe(SLOW_BPS, samples=self.news.options.sample_min)
        assert alarm is not None
        self.assertEqual(alarm.hot_spot, TARGET)
        self.assertEqual({target: limit.rate for target, limit in alarm.limits.items()}, {TARGET: CROWD / 64})
        self.write(alarm)
        refused = self.request(CROWD)
        self.assertGreater(refused, CROWD / 2)
        self.assertLess(refused, CROWD)

        recovered = self.observe(2 * FAST_BPS)
        assert recovered is not None
        self.assertFalse(recovered.detection.alarm)
        self.write(recovered)
        self.assertGreater(self.request(CROWD), CROWD / 2)

        self.switch.modify([entry(Meter.DESTINATION_LIMIT, HOT, None)])
        self.assertEqual(self.request(CROWD), 0)
