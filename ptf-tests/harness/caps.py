"""Connections of a server with capped windows: segments of either side, and the windows with which they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sluice.names import Register, Table
from sluice.resources.sharer import Caps
from sluice.switch.caps import cells

from . import entries, plan
from .base import Changes, StageTest, completed, first_answer, new
from .flow import ANSWER, FIRST, Flow
from .frames import Packet, changed
from .plan import S1, WEB

WRAP = 1 << 32
CAPS = (Register.SEND_CAP, Register.RECEIVE_CAP)
SCALE = 7
UNIT = 1 << SCALE
MSS = 536
CAP = 100 * UNIT
SYN_WINDOW = 1000
"""Window of SYN and SYN-ACK, in bytes: these are never scaled."""
FIRST_WINDOW = 8
"""Window in the handshake's last ACK, in units of UNIT: 1,024 bytes."""
BARE = 0xFFFF_FFFF
"""Default caps, so large that they never apply, of a server whose connections may have caps of their own."""

Options = Sequence[tuple[Any, Any]]


def options(scale: int | None = SCALE, mss: int = MSS) -> Options:
    """Return the options MSS and window scale, arranged as hosts do."""
    return [("MSS", mss), *([] if scale is None else [("NOP", None), ("WScale", scale)])]


def cell(fingerprint: int, cap: int) -> int:
    """Return the cell that the controller writes for a connection's own cap, in bytes."""
    return int(cells(Caps(*(np.array([value], np.int64) for value in (0, fingerprint, cap))))[0])


class Talk:
    """A connection with each side's next sequence number, by key: True for the client, False for the server."""

    def __init__(self, flow: Flow, client: int = FIRST, server: int = ANSWER) -> None:
        self.flow = flow
        self.first = {True: client, False: server}
        self.next = {True: (client + 1) % WRAP, False: (server + 1) % WRAP}

    def frame(self, client: bool, payload: bytes = b"", **fields: Any) -> Packet:
        """Return the next segment of the client or the server."""
        fields = {"flags": "A", "seq": self.next[client], "ack": self.next[not client], **fields}
        make = self.flow.request if client else self.flow.reply
        self.next[client] = (self.next[client] + len(payload)) % WRAP
        return make(payload, **fields)

    @property
    def index(self) -> int:
        """Flow index of a connection in way 1."""
        return self.flow.key.slot_1


class Capped(StageTest):
    """Base: S1 is managed, with caps that never apply unless a test sets others."""

    NEEDS = (Table.RESOURCES,)
    send, receive = BARE, BARE

    def setUp(self) -> None:
        super().setUp()
        self.insert(entries.managed(S1, self.send, self.receive))

    def cap(self, talk: Talk, send: int = 0, receive: int = 0, fingerprint: int | None = None) -> None:
        """Set caps of a connection's own, in bytes."""
        mark = talk.flow.key.fingerprint if fingerprint is None else fingerprint
        for register, bytes_ in zip(CAPS, (send, receive), strict=True):
            self.switch.registers.write(register, talk.index, cell(mark, bytes_))

    def sends(self, talk: Talk, client: bool, frame: Packet, window: int, *changes: Changes) -> None:
        """Send a frame; assert that it arrives with this window."""
        flow = talk.flow
        if client:
            port, out, expected = plan.CLIENT, flow.server.host.port, flow.at_server(frame)
        else:
            port, out, expected = flow.server.host.port, plan.CLIENT, flow.at_client(frame)
        self.forwards(port, frame, out, changed(expected, TCP_window=window), *changes)

    def opens_talk(self, talk: Talk, syn: Options, syn_ack: Options) -> None:
        """Send SYN and SYN-ACK; assert that both pass unchanged."""
        frame = talk.flow.request(flags="S", seq=talk.first[True], options=syn, window=SYN_WINDOW)
        self.sends(talk, True, frame, SYN_WINDOW, new(WEB, talk.flow.server))
        self.answers_talk(talk, syn_ack)

    def answers_talk(self, talk: Talk, syn_ack: Options) -> None:
        """Send the SYN-ACK; assert that it passes unchanged."""
        frame = talk.flow.reply(
            flags="SA", seq=talk.first[False], ack=talk.next[True], options=syn_ack, window=SYN_WINDOW
        )
        self.sends(talk, False, frame, SYN_WINDOW, first_answer(talk.flow.server))

    def shakes(self, talk: Talk, syn: Options | None = None, syn_ack: Options | None = None) -> None:
        """Perform a handshake whose last ACK offers a small window."""
        self.opens_talk(talk, options() if syn is None else syn, options() if syn_ack is None else syn_ack)
        self.sends(talk, True, talk.frame(True, window=FIRST_WINDOW), FIRST_WINDOW, completed(talk.flow.server))

    def talks(
        self, port: int = 40_000, syn: Options | None = None, syn_ack: Options | None = None, **numbers: int
    ) -> Talk:
        """Return a connection to S1 after its handshake."""
        talk = Talk(Flow(WEB, S1, client_port=port), **numbers)
        self.shakes(talk, syn, syn_ack)
        return talk

    def data(self, talk: Talk, client: bool, size: int = 1000, window: int = 1) -> None:
        """Send ``size`` bytes from one side."""
        self.sends(talk, client, talk.frame(client, bytes(size), window=window), window)

    def acks(self, talk: Talk, window: int, received: int, client: bool = True, **fields: Any) -> None:
        """Acknowledge all data from one side, with this window; assert that the other side receives ``received``."""
        self.sends(talk, client, talk.frame(client, window=window, **fields), received)

    def advances(self, talk: Talk, window: int, received: int, client: bool = True) -> None:
        """Send data from the peer, and acknowledge it."""
        self.data(talk, not client)
        self.acks(talk, window, received, client)
