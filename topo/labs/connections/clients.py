"""The clients of up to a million connections: they send requests, await answers, and repeat unanswered segments."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from topo.labs.connections.tuples import Tuples
from topo.labs.connections.wire import Wire
from topo.load.segments import ACK, FIN, PSH, RST, SYN, Segments, frames, read, segments

WINDOW = 1024
"""Largest number of connections that await an answer at the same time."""
AGAIN_S = 0.5
"""Seconds until a client repeats an unanswered segment."""
TRIES = 16
TICK_S = 0.01

Which = NDArray[np.int64]
"""Indices of tuples (pairs of a client's address and port)."""


class Clients:
    """The client side of each tuple's current connection."""

    def __init__(self, wire: Wire, macs: tuple[bytes, bytes], service: int, tuples: Tuples) -> None:
        """``macs``: MAC addresses of the switch and of the clients. ``service``: the service's IP address."""
        self._wire, self._macs, self._service, self._tuples = wire, macs, service, tuples
        size = tuples.client.size
        self.lives = np.zeros(size, np.int64)
        self._next = np.zeros(size, np.uint32)
        """The server's next sequence number by tuple; its upper octet is the server's number (see module
        `observer`)."""
        self.server = np.full(size, -1, np.int8)
        """By tuple: the number of the server that answered first; -1: no server has answered."""
        self.broken = np.zeros(size, bool)
        """By tuple: whether a RST arrived or a segment remained unanswered, since the caller last cleared this flag."""
        self.astray = np.zeros(size, bool)
        """By tuple: whether another server than the one that answered first sent data on the current connection, since
        the caller last cleared this flag."""
        self.syns = np.zeros(size, np.int64)
        """By tuple: SYNs sent for the current connection."""
        self.again = 0
        """Number of segments that clients have repeated."""
        self.given_up = 0

    def open(self, which: Which, *, again: bool = False) -> None:
        """Open a connection on each tuple. ``again``: the tuple had a connection before."""
        self.lives[which] += again
        self.server[which] = -1
        self.syns[which] = 0

        def answered(got: Segments, who: Which) -> NDArray[np.bool_]:
            right = (got.flags == SYN | ACK) & self._is_current(got, who)
            taken = who[right]
            self._next[taken] = got.sequence[right] + 1
            self.server[taken] = got.sequence[right] >> 24
            return right

        def confirm(done: Which) -> None:
            self._send(done, ACK, 1)

        def send_syn(chosen: Which) -> None:
            self.syns[chosen] += 1
            self._send(chosen, SYN, 0)

        self._exchange(which, send_syn, answered, confirm)

    def ask(self, which: Which) -> None:
        """Send data on each connection and await the answer, which is the server's number."""

        self._exchange(which, lambda chosen: self._send(chosen, PSH | ACK, 1, word=True), lambda got, _: got.has_word)

    def close(self, which: Which) -> None:
        """End connections by FINs, and await the servers' FINs."""
        self._exchange(
            which,
            lambda chosen: self._send(chosen, FIN | ACK, 1),
            lambda got, _: got.flags & FIN != 0,
            lambda done: self._send(done, ACK, 2),
        )

    def reset(self, which: Which) -> None:
        """End connections by RSTs, which servers do not answer."""
        for first in range(0, which.size, WINDOW):
            self._send(which[first : first + WINDOW], RST | ACK, 1)

    def _exchange(
        self,
        which: Which,
        send: Callable[[Which], None],
        answered: Callable[[Segments, Which], NDArray[np.bool_]],
        then: Callable[[Which], None] | None = None,
    ) -> None:
        """Send a segment on each connection and await the answer, for WINDOW connections at a time.

        An unanswered segment is sent up to TRIES times. A RST ends the wait of its connection.
        """
        waiting = np.zeros(self.lives.size, bool)
        due = np.zeros(self.lives.size)
        tries = np.zeros(self.lives.size, np.int64)
        out, ahead = which[:0], which
        while out.size or ahead.size:
            late = out[due[out] <= time.monotonic()]
            lost = late[tries[late] >= TRIES]
            waiting[lost] = False
            self.broken[lost] = True
            self.given_up += lost.size
            late = late[tries[late] < TRIES]
            self.again += late.size
            fresh = ahead[: WINDOW - out.size] if out.size <= WINDOW // 2 else ahead[:0]
            ahead = ahead[fresh.size :]
            waiting[fresh] = True
            if (now := np.concatenate((late, fresh))).size:
                send(now)
                tries[now] += 1
                due[now] = time.monotonic() + AGAIN_S
            done = self._take(waiting, answered)
            if then is not None and (intact := done[~self.broken[done]]).size:
                then(intact)
            out = np.concatenate((out, fresh))
            out = out[waiting[out]]

    def _take(self, waiting: NDArray[np.bool_], answered: Callable[[Segments, Which], NDArray[np.bool_]]) -> Which:
        """Receive segments and record faults; return the waiting connections that the segments answer or reset."""
        received = self._wire.receive(TICK_S)
        if not len(received):
            return np.zeros(0, np.int64)
        got = read(received)
        who = self._tuples.find(got.dst, got.dst_port)
        got, who = got.of(who >= 0), who[who >= 0]
        reset = got.flags & RST != 0
        self.broken[who[reset]] = True
        from_server = got.has_word & self._is_current(got, who)
        self.astray[who[from_server]] |= got.word[from_server] != self.server[who[from_server]]
        due = waiting[who]
        got, who, reset = got.of(due), who[due], reset[due]
        ended = np.unique(who[reset | answered(got, who)])
        waiting[ended] = False
        return ended

    def _is_current(self, got: Segments, who: Which) -> NDArray[np.bool_]:
        """Return which segments belong to their tuples' current connections, not to earlier ones."""
        return got.sequence >> 16 & 0xFF == self.lives[who]

    def _send(self, which: Which, flags: int, more: int, *, word: bool = False) -> None:
        made = segments(
            which.size,
            src=self._tuples.client[which],
            src_port=self._tuples.port[which],
            dst=self._service,
            dst_port=self._tuples.service_port,
            sequence=(self.lives[which] << 24) + more,
            acknowledgement=self._next[which] if flags & ACK else 0,
            flags=flags,
            word=which if word else None,
        )
        self._wire.send(frames(self._macs, made))
