"""The states of a pin (an entry in the connection table) of a service without content switching, and the transitions
between the states by kind of packet (docs/reference/pipeline.md)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from sluice.names import PinState

PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING, CLIENT_RESET, CLOSED, RESET = PinState


class Event(IntEnum):
    """The kinds of packets that the transitions distinguish."""

    NONE = 0
    """A UDP packet or an ICMP error: its connection's pin determines the server, and does not change."""
    SYN = 1
    SYN_ACK = 2
    ACK = 3
    """A segment without payload and without SYN, FIN or RST."""
    PAYLOAD = 4
    FIN = 5
    RESET = 6


FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
"""TCP flags."""


def event(flags: int, payload: int) -> Event:
    """Return the event of a segment with these flags and ``payload`` bytes."""
    if flags & RST:
        return Event.RESET
    if flags & FIN:
        return Event.FIN
    if flags & SYN:
        return Event.SYN_ACK if flags & ACK else Event.SYN
    return Event.PAYLOAD if payload else Event.ACK


UNANSWERED = (PENDING, REOPENING, CLIENT_RESET, RESET)
"""States in which the server has not answered the client's last SYN, or in which a RST has ended the connection. The
server's next SYN-ACK leads to ANSWERED, its next segment without SYN, FIN and RST to ESTABLISHED."""

HANDSHAKES = (PENDING, ANSWERED, REOPENING)
"""States in which a SYN has passed the switch, but not the handshake's last ACK."""

REQUEST: Mapping[Event, Mapping[PinState, PinState]] = {
    Event.SYN: dict.fromkeys((ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING, CLIENT_RESET), REOPENING)
    | {CLOSED: PENDING, RESET: PENDING},
    Event.ACK: {ANSWERED: ESTABLISHED},
    Event.PAYLOAD: {ANSWERED: ESTABLISHED},
    Event.FIN: {ANSWERED: CLIENT_CLOSING, ESTABLISHED: CLIENT_CLOSING, SERVER_CLOSING: CLOSED},
    Event.RESET: dict.fromkeys((PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING), CLIENT_RESET)
    | {SERVER_CLOSING: CLOSED},
}
"""For each event, the states that a client's packet changes, each with the state after the packet."""

ANSWER: Mapping[Event, Mapping[PinState, PinState]] = {
    Event.SYN_ACK: dict.fromkeys(UNANSWERED, ANSWERED),
    Event.ACK: dict.fromkeys(UNANSWERED, ESTABLISHED),
    Event.PAYLOAD: dict.fromkeys(UNANSWERED, ESTABLISHED),
    Event.FIN: dict.fromkeys((PENDING, ANSWERED, ESTABLISHED, REOPENING), SERVER_CLOSING)
    | dict.fromkeys((CLIENT_CLOSING, CLIENT_RESET, RESET), CLOSED),
    Event.RESET: dict.fromkeys(set(PinState) - {CLOSED}, RESET),
}
"""For each event, the states that a packet from the connection's server changes, each with the state after the packet.
A packet with one of these events renews the slot's stamp even if it changes no state."""

RENEWING: Mapping[Event, tuple[PinState, ...]] = {
    Event.SYN: (CLOSED, RESET),
    Event.ACK: (ANSWERED,),
    Event.PAYLOAD: (ANSWERED,),
    Event.FIN: (SERVER_CLOSING,),
    Event.RESET: (PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING),
}
"""States in which a client's packet renews the slot's stamp."""

LIFETIMES: Mapping[str, tuple[PinState, ...]] = {
    "pending": (PENDING,),
    "answered": (ANSWERED,),
    "idle": (ESTABLISHED, REOPENING, CLIENT_CLOSING),
    "half_closed": (SERVER_CLOSING, CLIENT_RESET),
    "linger": (CLOSED, RESET),
}
"""The configured lifetimes of a slot, and the states to which each lifetime applies."""


class Pin(NamedTuple):
    """A pin (a connection's entry in the connection table): its server, and its state before and after a packet."""

    server: int
    before: PinState
    after: PinState

    @property
    def is_repeated_syn_ack(self) -> bool:
        """Whether the packet, a SYN-ACK, repeats an earlier SYN-ACK of its connection."""
        return self.after is not ANSWERED or self.before is ANSWERED


def is_open(state: PinState) -> bool:
    """Return whether a connection in this state counts for its server's load."""
    return state < SERVER_CLOSING
