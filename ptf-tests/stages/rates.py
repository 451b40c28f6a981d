"""Tests of stage `rates`: the registers of response rates after known series of packets."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

from harness import bulk, entries
from harness.base import Changes, StageTest, completed, was_reset
from harness.flow import Flow
from harness.frames import IP, TCP, Packet, changed, layers
from harness.plan import CLIENT_HOST, S1, S1_HOST, S3, S3_HOST, UNROUTED, UPLINK_HOST, WEB, Host
from harness.probes import ether, routed
from harness.slots import Response, Tuple5
from sluice.dataplane.rates import window
from sluice.dataplane.units import FREE_STEPS
from sluice.names import RATE_TICK_US, DropReason, Register
from sluice.switch.targets import TOFINO

STEP = 64
"""Short time step of the estimator, in units of the rate clock: 65.5 ms, about the time that a test needs for a segment
with all checks. So some segments begin a new step, and others do not."""
LONG = 1 << 18
"""Long time step of the estimator, in units of the rate clock: 268 s, so that few or no steps end during a test."""
HEADERS = 40
"""Length in bytes of an IPv4 packet with a TCP segment without options and payload."""


def segment(source: Host, to: Host, payload: bytes) -> Packet:
    """Return a TCP segment with data between hosts that are not part of a service."""
    return layers(
        ether(source), IP(src=source.address, dst=to.address), TCP(sport=80, dport=50000, flags="PA"), payload
    )


@dataclass
class Twin:
    """Expected values of a response's registers (last time and bytes), by the Python model of the rate estimator."""

    last: int = 0
    content: int = 0


class Measured(StageTest):
    """Base class of the tests that compare the registers with the model, which uses the switch's own times."""

    def measure(self, step: int, mask: int = 0) -> None:
        """Measure response rates until the end of the test, in time steps of `step` units of the rate clock.

        Only responses whose fingerprint is 0 in the bits of `mask` are measured.
        """
        self.step = step
        self.twins: dict[Tuple5, Twin] = {}
        self.measure_rates(step, mask)

    def cells(self, key: Tuple5) -> tuple[int, int, int]:
        """Return fingerprint, time of the last packet, and bytes in the slot of a response, which another response may
        occupy."""
        slot = self.place(key).slot
        flow, content = self.switch.registers.read([(Register.RATE_FLOW, slot), (Register.RATE_BYTES, slot)])
        # On Tofino the bytes are a sum of two words; one contains the bytes of a step's first packet.
        return flow >> 32, flow & 0xFFFFFFFF, (content >> 32) + (content & 0xFFFFFFFF)

    def place(self, key: Tuple5) -> Response:
        """Return slot, fingerprint and owner (the number by which the slot identifies it) of a response in the switch's
        registers."""
        return key.response(self.switch.pipeline.target is TOFINO)

    def two_of_one_slot(self) -> tuple[Flow, Flow]:
        """Return two responses that share a slot."""
        first = Flow(WEB, S3)
        slot = self.place(first.key).slot
        others = (key for key in bulk.keys(WEB, 60_000, seed=4) if self.place(key).slot == slot)
        return first, Flow.of(next(others), WEB, S3)

    def assertNotMeasured(self, key: Tuple5) -> None:
        """Assert that the response's slot is still empty."""
        self.assertEqual(self.cells(key), (0, 0, 0))

    def assertAdded(self, key: Tuple5, size: int) -> int:
        """Assert that a packet of `size` bytes was counted; return how many steps began since the previous packet."""
        fingerprint, last, content = self.cells(key)
        twin = self.twins.setdefault(key, Twin())
        steps = last // self.step - twin.last // self.step
        twin.content, twin.last = window(twin.content, twin.last, last, size, self.step), last
        self.assertEqual((fingerprint, content), (self.place(key).owner, twin.content))
        return steps

    def assertStays(self, key: Tuple5) -> None:
        """Assert that no packet of the response was counted since the last `assertAdded`."""
        twin = self.twins[key]
        self.assertEqual(self.cells(key), (self.place(key).owner, twin.last, twin.content))

    def sends(self, flow: Flow, payload: bytes, *changes: Changes, flags: str = "PA", **fields: Any) -> None:
        """Send a segment of the server."""
        self.server_sends(flow, flow.reply(payload, flags=flags, seq=5001, ack=1019, **fields), *changes)

    def answers_with(self, flow: Flow, size: int) -> int:
        """Send data of the server; assert that it is counted; return how many steps began since the previous packet."""
        self.sends(flow, bytes(size))
        return self.assertAdded(flow.key, HEADERS + size)


class OffByDefault(Measured):
    """The program measures no response by default."""

    def runTest(self) -> None:
        self.measure(0)
        flow = self.establishes(Flow(WEB, S1))
        self.sends(flow, b"page")
        self.assertNotMeasured(flow.key)


class Train(Measured):
    """After each segment of a series, sent without waiting, the registers equal those of the model exactly."""

    def runTest(self) -> None:
        source = random.Random(7)
        self.measure(STEP)
        flow = self.establishes(Flow(WEB, S1))
        for _ in range(24):
            self.answers_with(flow, source.choice((1, 100, 536, 1448)))


class Pauses(Measured):
    """After pauses of every length the window equals that of the model; the test sets back the last packet's time."""

    def runTest(self) -> None:
        self.measure(LONG)
        flow = self.establishes(Flow(WEB, S1))
        place = self.place(flow.key)
        for pause in range(FREE_STEPS + 2):
            self.answers_with(flow, 1448)
            twin = self.twins[flow.key]
            twin.last -= pause * LONG
            self.switch.registers.write(Register.RATE_FLOW, place.slot, place.owner << 32 | twin.last)
            self.assertIn(self.answers_with(flow, 1000), (pause, pause + 1))  # a step may end before the segment


class WithinAStep(Measured):
    """All bytes of packets within one step are added."""

    def runTest(self) -> None:
        self.measure(LONG)
        flow = self.establishes(Flow(WEB, S1))
        for size in (1, 1448, 1448, 500):
            self.answers_with(flow, size)


class WhatCounts(Measured):
    """Data is counted, with or without FIN; SYN-ACK, bare ACK, FIN, RST and the client's segments are not."""

    def runTest(self) -> None:
        self.measure(LONG)
        flow = self.half_opens(Flow(WEB, S1))
        self.client_sends(flow, flow.data(), completed(S1))
        self.sends(flow, b"", flags="A")
        self.assertNotMeasured(flow.key)
        self.answers_with(flow, 60)
        self.sends(flow, b"", flags="FA")
        self.client_sends(flow, flow.data(b"more"))
        self.assertStays(flow.key)
        self.sends(flow, bytes(30), flags="FPA")
        self.assertAdded(flow.key, HEADERS + 30)
        self.sends(flow, b"reason", was_reset(S1), flags="RA")
        self.assertStays(flow.key)


class OptionsCount(Measured):
    """The counted bytes are those of the IPv4 packet with TCP options; an ACK with options still counts as bare."""

    def runTest(self) -> None:
        self.measure(LONG)
        flow = self.establishes(Flow(WEB, S1))
        options = [("NOP", None), ("NOP", None), ("Timestamp", (1, 2))]
        self.sends(flow, b"", options=options)
        self.assertNotMeasured(flow.key)
        self.sends(flow, b"x", options=options)
        self.assertAdded(flow.key, HEADERS + 12 + 1)


class Unpinned(Measured):
    """A response of a connection without a pin is measured, by the 5-tuple that the client uses."""

    def runTest(self) -> None:
        self.measure(LONG)
        self.answers_with(Flow(WEB, S3), 10)


class Routed(Measured):
    """A response that an inside host sends without a service is measured; a packet from an outside port is not."""

    def runTest(self) -> None:
        self.measure(LONG)
        frame = segment(S1_HOST, CLIENT_HOST, bytes(10))
        self.forwards(S1_HOST.port, frame, CLIENT_HOST.port, routed(frame, CLIENT_HOST))
        self.assertAdded(Tuple5(CLIENT_HOST.address, 50000, S1_HOST.address, 80), HEADERS + 10)
        for source, to in ((CLIENT_HOST, S3_HOST), (UPLINK_HOST, CLIENT_HOST)):
            frame = segment(source, to, bytes(10))
            self.forwards(source.port, frame, to.port, routed(frame, to))
            self.assertNotMeasured(Tuple5(to.address, 50000, source.address, 80))


class NotForwarded(Measured):
    """A packet without a route is not measured as a response."""

    def runTest(self) -> None:
        self.measure(LONG)
        frame = changed(segment(S1_HOST, CLIENT_HOST, bytes(10)), IP_dst=UNROUTED)
        self.drops(S1_HOST.port, frame, DropReason.NO_ROUTE)
        self.assertNotMeasured(Tuple5(UNROUTED, 50000, S1_HOST.address, 80))


class FlowSample(Measured):
    """With a mask of two bits, only the responses whose fingerprint is 0 in both bits are measured: about a quarter."""

    def runTest(self) -> None:
        self.measure(LONG, mask=3)
        keys = {self.place(key).slot: key for key in bulk.keys(WEB, 60, seed=3)}.values()
        chosen = [key for key in keys if self.place(key).fingerprint & 3 == 0]
        self.assertTrue(len(keys) // 8 < len(chosen) < len(keys) // 2, f"{len(chosen)} of {len(keys)}")
        for key in keys:
            flow = Flow.of(key, WEB, S3)
            if key in chosen:
                self.answers_with(flow, 10)
            else:
                self.sends(flow, bytes(10))
                self.assertNotMeasured(key)


class Collision(Measured):
    """Of two responses in one slot the first is measured; the second is measured only after the first has ended."""

    def runTest(self) -> None:
        self.measure(LONG)
        first, second = self.two_of_one_slot()
        self.answers_with(first, 10)
        self.sends(second, bytes(20))
        self.assertStays(first.key)
        self.switch.modify([entries.rate_settings(STEP, 0)])
        self.step = STEP
        time.sleep((FREE_STEPS + 2) * STEP * RATE_TICK_US / 1e6)
        self.answers_with(second, 20)
        self.switch.modify([entries.rate_settings(LONG, 0)])
        self.sends(first, bytes(10))
        self.assertStays(second.key)


class SilentForWeeks(Measured):
    """A slot whose response ended days or weeks ago is free."""

    def runTest(self) -> None:
        self.measure(LONG)
        first, second = self.two_of_one_slot()
        place = self.place(first.key)
        self.answers_with(first, 10)
        for days in (5, 20, 26, 48):
            last = (self.cells(first.key)[1] - int(days * 86400e6 / RATE_TICK_US)) % (1 << 32)
            self.switch.registers.write(Register.RATE_FLOW, place.slot, place.owner << 32 | last)
            self.twins.clear()
            self.answers_with(second, 20)


class Saturates(Measured):
    """A window with the largest value keeps that value when bytes are added."""

    def runTest(self) -> None:
        self.measure(LONG)
        flow = Flow(WEB, S3)
        self.answers_with(flow, 10)
        almost = (1 << 32) - 60
        value = almost << 32 if self.switch.pipeline.target is TOFINO else almost
        self.switch.registers.write(Register.RATE_BYTES, self.place(flow.key).slot, value)
        self.twins[flow.key].content = almost
        self.answers_with(flow, 10)
        self.answers_with(flow, 10)
