"""The life of a pin (docs/reference/pipeline.md) as a table: what each kind of packet makes of each state. Pure.

Packet tests hold the compiled program to it, sim/tests the model that a replay decides from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sluice.names import PinState

from .flow import Flow
from .frames import Packet

PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING, CLIENT_RESET, CLOSED, RESET = PinState


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
