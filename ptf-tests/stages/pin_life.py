"""Stage `connections`: the life of a pin (docs/pipeline.md): its states, who moves them, how long each is kept.

The cells are written, so that no test waits for the time that it is about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness import plan
from harness.base import StageTest
from harness.collisions import crowd
from harness.flow import Flow
from harness.frames import Packet
from harness.plan import S1, S2, WEB
from sluice.names import PinState

PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING, CLIENT_RESET, CLOSED, RESET = PinState

AGE = 20
"""Ticks: of a stamp that is written; a packet that counts leaves one that is younger."""


@dataclass(frozen=True)
class Kind:
    """A kind of packet."""

    name: str
    by_client: bool
    frame: Callable[[Flow], Packet]


SYN = Kind("client's SYN", True, Flow.syn)
ACK = Kind("client's ACK", True, Flow.ack)
DATA = Kind("client's data", True, Flow.data)
FIN = Kind("client's FIN", True, Flow.fin)
RST = Kind("client's RST", True, lambda flow: flow.request(flags="R", seq=77))
SYN_FIN = Kind("client's SYN+FIN", True, lambda flow: flow.request(flags="SF", seq=77))
CHRISTMAS = Kind("client's FIN+PSH+URG", True, lambda flow: flow.request(flags="FPU", seq=77))
SERVERS_SYN_ACK = Kind("server's SYN-ACK", False, Flow.syn_ack)
SERVERS_ACK = Kind("server's ACK", False, lambda flow: flow.reply(flags="A", seq=5001, ack=1001))
SERVERS_DATA = Kind("server's data", False, lambda flow: flow.reply(b"more", flags="PA", seq=5001, ack=1001))
SERVERS_FIN = Kind("server's FIN", False, lambda flow: flow.reply(flags="FA", seq=5001, ack=1001))
SERVERS_RST = Kind("server's RST", False, lambda flow: flow.reply(flags="RA", seq=5001, ack=1001))

NEXT: dict[Kind, dict[PinState, PinState]] = {
    SYN: dict.fromkeys((ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING, CLIENT_RESET), REOPENING)
    | {CLOSED: PENDING, RESET: PENDING},
    ACK: {ANSWERED: ESTABLISHED},
    DATA: {ANSWERED: ESTABLISHED},
    FIN: {ANSWERED: CLIENT_CLOSING, ESTABLISHED: CLIENT_CLOSING, SERVER_CLOSING: CLOSED},
    RST: dict.fromkeys((PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING), CLIENT_RESET)
    | {SERVER_CLOSING: CLOSED},
    SERVERS_SYN_ACK: dict.fromkeys((PENDING, REOPENING, CLIENT_RESET, RESET), ANSWERED),
    SERVERS_ACK: dict.fromkeys((PENDING, REOPENING, CLIENT_RESET, RESET), ESTABLISHED),
    SERVERS_FIN: dict.fromkeys((PENDING, ANSWERED, ESTABLISHED, REOPENING), SERVER_CLOSING)
    | dict.fromkeys((CLIENT_CLOSING, CLIENT_RESET, RESET), CLOSED),
    SERVERS_RST: dict.fromkeys(PinState, RESET),
}
"""The state behind a packet, where it is another one than before."""
NEXT[SERVERS_DATA] = NEXT[SERVERS_ACK]
NEXT[SYN_FIN] = NEXT[CHRISTMAS] = NEXT[FIN]

RENEWING: dict[Kind, tuple[PinState, ...]] = {
    SYN: (CLOSED, RESET),
    ACK: (ANSWERED,),
    DATA: (ANSWERED,),
    FIN: (SERVER_CLOSING,),
    SYN_FIN: (SERVER_CLOSING,),
    CHRISTMAS: (SERVER_CLOSING,),
    RST: (PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING),
}
"""States in which a client's packet counts; a server's always does."""

LIFETIMES = {
    "pending": (PENDING,),
    "answered": (ANSWERED,),
    "idle": (ESTABLISHED, REOPENING, CLIENT_CLOSING),
    "half_closed": (SERVER_CLOSING, CLIENT_RESET),
    "linger": (CLOSED, RESET),
}


class States(StageTest):
    """Every kind of packet in every state: the state behind it, whether it keeps the slot, and that the pin stays."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        for kind, following in NEXT.items():
            for state in PinState:
                with self.subTest(packet=kind.name, state=state.name):
                    self.put_pin(flow, state, AGE)
                    (before,) = self.pins(flow.key)
                    self.exchange(plan.CLIENT if kind.by_client else S1.host.port, kind.frame(flow))
                    (after,) = self.pins(flow.key)
                    self.assertEqual(after.server, S1.id)
                    self.assertIs(after.state, following.get(state, state))
                    counts = not kind.by_client or state in RENEWING[kind]
                    self.assertEqual(after.stamp > before.stamp, counts, "whether the packet keeps the slot")


class OtherServers(StageTest):
    """What another server sends changes nothing of the pin, whatever it is."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        for kind in (SERVERS_SYN_ACK, SERVERS_ACK, SERVERS_DATA, SERVERS_FIN, SERVERS_RST):
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
