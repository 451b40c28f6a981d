"""The kinds of packets that the model of a pin's life (sluice.dataplane.pins) distinguishes, and their effects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice.dataplane.pins import ANSWER, RENEWING, REQUEST, Event
from sluice.names import PinState

from .flow import Flow
from .frames import Packet


@dataclass(frozen=True)
class Kind:
    """A kind of packet: its event, its direction, and a function that builds a frame of this kind."""

    name: str
    event: Event
    by_client: bool
    frame: Callable[[Flow], Packet]

    @property
    def following(self) -> Mapping[PinState, PinState]:
        """The state after the packet, by the state before; states that the packet does not change are missing."""
        return (REQUEST if self.by_client else ANSWER)[self.event]

    def keeps(self, state: PinState) -> bool:
        """Return whether the packet keeps the slot of a pin in this state from expiring."""
        return not self.by_client or state in RENEWING[self.event]


SYN = Kind("client's SYN", Event.SYN, True, Flow.syn)
ACK = Kind("client's ACK", Event.ACK, True, Flow.ack)
DATA = Kind("client's data", Event.PAYLOAD, True, Flow.data)
FIN = Kind("client's FIN", Event.FIN, True, Flow.fin)
RST = Kind("client's RST", Event.RESET, True, lambda flow: flow.request(flags="R", seq=77))
SYN_FIN = Kind("client's SYN+FIN", Event.FIN, True, lambda flow: flow.request(flags="SF", seq=77))
CHRISTMAS = Kind("client's FIN+PSH+URG", Event.FIN, True, lambda flow: flow.request(flags="FPU", seq=77))
SERVERS_SYN_ACK = Kind("server's SYN-ACK", Event.SYN_ACK, False, Flow.syn_ack)
SERVERS_ACK = Kind("server's ACK", Event.ACK, False, lambda flow: flow.reply(flags="A", seq=5001, ack=1001))
SERVERS_DATA = Kind(
    "server's data", Event.PAYLOAD, False, lambda flow: flow.reply(b"more", flags="PA", seq=5001, ack=1001)
)
SERVERS_FIN = Kind("server's FIN", Event.FIN, False, lambda flow: flow.reply(flags="FA", seq=5001, ack=1001))
SERVERS_RST = Kind("server's RST", Event.RESET, False, lambda flow: flow.reply(flags="RA", seq=5001, ack=1001))

REQUESTS = (SYN, ACK, DATA, FIN, RST, SYN_FIN, CHRISTMAS)
ANSWERS = (SERVERS_SYN_ACK, SERVERS_ACK, SERVERS_DATA, SERVERS_FIN, SERVERS_RST)
