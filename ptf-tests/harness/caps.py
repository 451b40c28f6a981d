"""Connections to a server whose TCP windows are capped: segments of either side, and the windows that must arrive."""

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
"""Window of SYN and SYN-ACK in bytes; windows of these segments are never scaled."""
FIRST_WINDOW = 8
"""Window in the handshake's last ACK, in units of UNIT bytes: 1,024 bytes."""
BARE = 0xFFFF_FFFF
"""Default cap in bytes, so large that it never applies, for tests that set caps of single connections."""

Options = Sequence[tuple[Any, Any]]


def options(scale: int | None = SCALE, mss: int = MSS) -> Options:
    """Return the TCP options MSS and window scale in the order in which hosts send them."""
    return [("MSS", mss), *([] if scale is None else [("NOP", None), ("WScale", scale)])]


def cell(fingerprint: int, cap: int) -> int:
    """Return the value that the controller writes into a connection's cell for its own cap (`cap`, in bytes)."""
    return int(cells(Caps(*(np.array([value], np.int64) for value in (0, fingerprint, cap))))[0])


class Talk:
    """A connection with the first and the next sequence number of each side.

    In `first` and `next`, the key True is the client, and False the server.
    """

    def __init__(self, flow: Flow, client: int = FIRST, server: int = ANSWER) -> None:
        self.flow = flow
        self.first = {True: client, False: server}
        self.next = {True: (client + 1) % WRAP, False: (server + 1) % WRAP}

    def frame(self, client: bool, payload: bytes = b"", **fields: Any) -> Packet:
        """Return the next segment of the client or of the server, and advance the sender's next sequence number."""
        fields = {"flags": "A", "seq": self.next[client], "ack": self.next[not client], **fields}
        make = self.flow.request if client else self.flow.reply
        self.next[client] = (self.next[client] + len(payload)) % WRAP
        return make(payload, **fields)

    @property
    def index(self) -> int:
        """Index of the connection's cells if its pin is in way 1 (the slot of its first hash)."""
        return self.flow.key.slot_1


class Capped(StageTest):
    """Base class: S1's windows are managed, with default caps that never apply unless a test sets other caps."""

    NEEDS = (Table.RESOURCES,)
    send, receive = BARE, BARE

    def setUp(self) -> None:
        super().setUp()
        self.insert(entries.managed(S1, self.send, self.receive))

    def cap(self, talk: Talk, send: int = 0, receive: int = 0, fingerprint: int | None = None) -> None:
        """Set the connection's own caps in bytes; 0: no cap of its own.

        `fingerprint`: the fingerprint in the cells; None: the connection's. With another one, the caps do not apply.
        """
        mark = talk.flow.key.fingerprint if fingerprint is None else fingerprint
        for register, bytes_ in zip(CAPS, (send, receive), strict=True):
            self.switch.registers.write(register, talk.index, cell(mark, bytes_))

    def sends(self, talk: Talk, client: bool, frame: Packet, window: int, *changes: Changes) -> None:
        """Send a frame; assert that the receiver gets it with this window."""
        flow = talk.flow
        if client:
            port, out, expected = plan.CLIENT, flow.server.host.port, flow.at_server(frame)
        else:
            port, out, expected = flow.server.host.port, plan.CLIENT, flow.at_client(frame)
        self.forwards(port, frame, out, changed(expected, TCP_window=window), *changes)

    def opens_talk(self, talk: Talk, syn: Options, syn_ack: Options) -> None:
        """Send SYN and SYN-ACK; assert that the switch forwards both with unchanged windows."""
        frame = talk.flow.request(flags="S", seq=talk.first[True], options=syn, window=SYN_WINDOW)
        self.sends(talk, True, frame, SYN_WINDOW, new(WEB, talk.flow.server))
        self.answers_talk(talk, syn_ack)

    def answers_talk(self, talk: Talk, syn_ack: Options) -> None:
        """Send the SYN-ACK; assert that the switch forwards it with an unchanged window."""
        frame = talk.flow.reply(
            flags="SA", seq=talk.first[False], ack=talk.next[True], options=syn_ack, window=SYN_WINDOW
        )
        self.sends(talk, False, frame, SYN_WINDOW, first_answer(talk.flow.server))

    def shakes(self, talk: Talk, syn: Options | None = None, syn_ack: Options | None = None) -> None:
        """Perform a handshake whose last ACK offers a window of FIRST_WINDOW."""
        self.opens_talk(talk, options() if syn is None else syn, options() if syn_ack is None else syn_ack)
        self.sends(talk, True, talk.frame(True, window=FIRST_WINDOW), FIRST_WINDOW, completed(talk.flow.server))

    def talks(
        self, port: int = 40_000, syn: Options | None = None, syn_ack: Options | None = None, **numbers: int
    ) -> Talk:
        """Perform the handshake of a connection to S1; return the connection."""
        talk = Talk(Flow(WEB, S1, client_port=port), **numbers)
        self.shakes(talk, syn, syn_ack)
        return talk

    def data(self, talk: Talk, client: bool, size: int = 1000, window: int = 1) -> None:
        """Send `size` bytes from the client or the server; assert that the peer receives `window` unchanged."""
        self.sends(talk, client, talk.frame(client, bytes(size), window=window), window)

    def acks(self, talk: Talk, window: int, received: int, client: bool = True, **fields: Any) -> None:
        """Let one side acknowledge all data with the window `window`; assert that its peer receives `received`."""
        self.sends(talk, client, talk.frame(client, window=window, **fields), received)

    def advances(self, talk: Talk, window: int, received: int, client: bool = True) -> None:
        """Send data to one side, and the side's acknowledgement with the window `window`.

        Assert that the sender of the data receives the window `received`. `client`: whether the side is the client.
        """
        self.data(talk, not client)
        self.acks(talk, window, received, client)
