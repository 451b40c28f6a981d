"""Tests of the life of a pin (docs/reference/pipeline.md): its states, the changes of state, and the lifetimes.

The tests write the cells of pins, so that no test waits until a lifetime has passed.
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
"""Age in ticks of the stamps that the tests write; a packet that renews a pin writes a later stamp."""


class States(StageTest):
    """In every state, every kind of packet changes state and stamp as in sluice.dataplane.pins; the server stays."""

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
    """A packet of a server to which the connection is not pinned does not change the pin."""

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
    """A slot is occupied for the lifetime of its state; afterwards a SYN of another connection claims the slot."""

    def runTest(self) -> None:
        flows = crowd()
        for name, states in LIFETIMES.items():
            time = 1000
            self.set_timers(**dict.fromkeys(LIFETIMES, 100) | {name: time})
            for state in states:
                for age, is_kept in ((time - 100, True), (time + 1, False)):
                    with self.subTest(state=state.name, is_kept=is_kept):
                        self.put_pin(flows.first, state, age)
                        self.exchange(plan.CLIENT, flows.second.syn())
                        (pin,) = self.pins(flows.second.key)
                        self.assertEqual(pin.way, 2 if is_kept else 1)
                        self.assertEqual(bool(self.pins(flows.first.key)), is_kept)
                        self.switch.clear_connections()


class OwnSyn(StageTest):
    """A SYN of a pinned connection draws a server again if the connection has ended, or if its pin has expired.

    The connection has ended if both ends have closed it, or if the server has sent an RST.
    """

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
