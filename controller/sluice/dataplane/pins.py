"""The life of a plain service's pin (docs/reference/pipeline.md): what each kind of packet makes of each state."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from sluice.names import PinState

PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING, CLIENT_RESET, CLOSED, RESET = PinState


class Event(IntEnum):
    """What a packet does to its connection."""

    NONE = 0
    """UDP, or an ICMP error: it looks, and changes nothing."""
    SYN = 1
    SYN_ACK = 2
    ACK = 3
    """No payload."""
    PAYLOAD = 4
    FIN = 5
    RESET = 6


FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
"""Flags of TCP."""


def event(flags: int, payload: int) -> Event:
    """What a segment with these flags and so many bytes of payload does."""
    if flags & RST:
        return Event.RESET
    if flags & FIN:
        return Event.FIN
    if flags & SYN:
        return Event.SYN_ACK if flags & ACK else Event.SYN
    return Event.PAYLOAD if payload else Event.ACK


UNANSWERED = (PENDING, REOPENING, CLIENT_RESET, RESET)
"""The server's next packet, unless it ends the connection, says that there is a connection behind."""

HANDSHAKES = (PENDING, ANSWERED, REOPENING)
"""A SYN has come, and the handshake's last ACK has not."""

REQUEST: Mapping[Event, Mapping[PinState, PinState]] = {
    Event.SYN: dict.fromkeys((ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING, CLIENT_RESET), REOPENING)
    | {CLOSED: PENDING, RESET: PENDING},
    Event.ACK: {ANSWERED: ESTABLISHED},
    Event.PAYLOAD: {ANSWERED: ESTABLISHED},
    Event.FIN: {ANSWERED: CLIENT_CLOSING, ESTABLISHED: CLIENT_CLOSING, SERVER_CLOSING: CLOSED},
    Event.RESET: dict.fromkeys((PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING), CLIENT_RESET)
    | {SERVER_CLOSING: CLOSED},
}
"""The state behind a client's packet, where it is another one than before."""

ANSWER: Mapping[Event, Mapping[PinState, PinState]] = {
    Event.SYN_ACK: dict.fromkeys(UNANSWERED, ANSWERED),
    Event.ACK: dict.fromkeys(UNANSWERED, ESTABLISHED),
    Event.PAYLOAD: dict.fromkeys(UNANSWERED, ESTABLISHED),
    Event.FIN: dict.fromkeys((PENDING, ANSWERED, ESTABLISHED, REOPENING), SERVER_CLOSING)
    | dict.fromkeys((CLIENT_CLOSING, CLIENT_RESET, RESET), CLOSED),
    Event.RESET: dict.fromkeys(set(PinState) - {CLOSED}, RESET),
}
"""The state behind a packet of the pin's server, where it is another one than before. Each of these keeps the slot."""

RENEWING: Mapping[Event, tuple[PinState, ...]] = {
    Event.SYN: (CLOSED, RESET),
    Event.ACK: (ANSWERED,),
    Event.PAYLOAD: (ANSWERED,),
    Event.FIN: (SERVER_CLOSING,),
    Event.RESET: (PENDING, ANSWERED, ESTABLISHED, REOPENING, CLIENT_CLOSING, SERVER_CLOSING),
}
"""States in which a client's packet keeps the slot."""

LIFETIMES: Mapping[str, tuple[PinState, ...]] = {
    "pending": (PENDING,),
    "answered": (ANSWERED,),
    "idle": (ESTABLISHED, REOPENING, CLIENT_CLOSING),
    "half_closed": (SERVER_CLOSING, CLIENT_RESET),
    "linger": (CLOSED, RESET),
}
"""The times that a slot is kept, and in which states."""


class Pin(NamedTuple):
    """What a packet found in its connection's slot, and what it made of it."""

    server: int
    before: PinState
    after: PinState

    @property
    def answered_again(self) -> bool:
        """Whether the SYN-ACK that found it was not its connection's first."""
        return self.after is not ANSWERED or self.before is ANSWERED


def is_open(state: PinState) -> bool:
    """Whether a connection in this state counts for its server's load."""
    return state < SERVER_CLOSING
