"""Stage `connections`: the life of a pin (docs/reference/pipeline.md): states, who moves them, how long each is kept.

The cells are written, so that no test waits for the time that it is about.
"""

from __future__ import annotations

from harness import plan
from harness.base import StageTest
from harness.collisions import crowd
from harness.flow import Flow
from harness.pin_table import ANSWERS, REQUESTS
from harness.plan import S1, S2, WEB
from sluice.dataplane.pins import CLOSED, LIFETIMES, RESET
from sluice.names import PinState

AGE = 20
"""Ticks: of a stamp that is written; a packet that counts leaves one that is younger."""


class States(StageTest):
    """Every kind of packet in every state: the state behind it, whether it keeps the slot, and that the pin stays."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        for kind in (*REQUESTS, *ANSWERS):
            for state in PinState:
                with self.subTest(packet=kind.name, state=state.name):
                    self.put_pin(flow, state, AGE)
                    (before,) = self.pins(flow.key)
                    self.exchange(plan.CLIENT if kind.by_client else S1.host.port, kind.frame(flow))
                    (after,) = self.pins(flow.key)
                    self.assertEqual(after.server, S1.id)
                    self.assertIs(after.state, kind.following.get(state, state))
                    self.assertEqual(after.stamp > before.stamp, kind.keeps(state), "whether the packet keeps the slot")


class OtherServers(StageTest):
    """What another server sends changes nothing of the pin, whatever it is."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        for kind in ANSWERS:
            for state in PinState:
                with self.subTest(packet=kind.name, state=state.name):
                    self.put_pin(flow, state, AGE)
                    before = self.pins(flow.key)
                    self.exchange(S2.host.port, kind.frame(flow.to(S2)))
                    self.assertEqual(self.pins(flow.key), before)


class Lifetimes(StageTest):
    """In each state a slot is kept for its time and no longer: then a SYN of another connection takes it."""

    def runTest(self) -> None:
        met = crowd()
        for name, states in LIFETIMES.items():
            time = 1000
            self.set_timers(**dict.fromkeys(LIFETIMES, 100) | {name: time})
            for state in states:
                for age, kept in ((time - 100, True), (time + 1, False)):
                    with self.subTest(state=state.name, kept=kept):
                        self.put_pin(met.first, state, age)
                        self.exchange(plan.CLIENT, met.second.syn())
                        (pin,) = self.pins(met.second.key)
                        self.assertEqual(pin.way, 2 if kept else 1)
                        self.assertEqual(bool(self.pins(met.first.key)), kept)
                        self.switch.clear_connections()


class OwnSyn(StageTest):
    """A connection's own ports: what both ends closed, or the server reset, or what is over, is chosen for anew."""

    def runTest(self) -> None:
        self.weigh(WEB, {S2: 1})
        flow = Flow(WEB, S1)
        for state in PinState:
            for age in (0, 1 << 20):
                with self.subTest(state=state.name, age=age):
                    self.put_pin(flow, state, age)
                    self.exchange(plan.CLIENT, flow.syn())
                    (pin,) = self.pins(flow.key)
                    anew = age > 0 or state in (CLOSED, RESET)
                    self.assertEqual(pin.server, S2.id if anew else S1.id)
