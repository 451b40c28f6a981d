"""A TCP sender with Reno's congestion control (RFC 5681), NewReno's recovery (RFC 6582) and RFC 6298's timeouts.

A sender sends one response to one client, packet by packet. Packets pass a shared link, which may drop them, and the
client's own link. The client acknowledges each segment at once. Acknowledgements are never lost, and reach the sender
after the delay of the path.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .clock import Clock

MSS = 1460
HEADERS = 40
FRAME = 14
"""Bytes of the TCP and IP headers (HEADERS) and of the Ethernet header (FRAME)."""


@dataclass(frozen=True, slots=True)
class TcpPlan:
    """Parameters of all senders. Times are in seconds, windows in segments."""

    initial_window: int = 2
    rto_min_s: float = 0.2
    rto_first_s: float = 1.0
    rto_max_s: float = 60.0
    window_max: float = math.inf
    """The receiver's window, in segments."""


class Sender:
    """The sender of one response. It calls ``arrived`` each time an acknowledgement shows that the client has received
    further bytes in order."""

    __slots__ = (
        "_arrived",
        "_backoff",
        "_clock",
        "_cwnd",
        "_deadline",
        "_dup",
        "_expected",
        "_gone",
        "_highest",
        "_next",
        "_offered",
        "_plan",
        "_recover",
        "_rto",
        "_rttvar",
        "_send",
        "_short",
        "_srtt",
        "_ssthresh",
        "_strays",
        "_timer",
        "_timing",
        "_una",
    )

    def __init__(
        self,
        clock: Clock,
        plan: TcpPlan,
        send: Callable[[int], float | None],
        arrived: Callable[[int], None],
    ) -> None:
        """``send`` sends a packet of a given size, counted from the IP header on. It returns the seconds until the
        sender receives the acknowledgement, or None if the packet was lost. ``arrived`` is called with the number
        of bytes that the client has received in order since the last call."""
        self._clock, self._plan, self._send, self._arrived = clock, plan, send, arrived
        self._offered = self._highest = 0
        self._short: dict[int, int] = {}
        self._una = self._next = 0
        self._cwnd, self._ssthresh = float(plan.initial_window), math.inf
        self._dup, self._recover = 0, -1
        self._srtt = self._rttvar = 0.0
        self._rto, self._backoff = plan.rto_first_s, 1.0
        self._deadline = self._timer = math.inf
        self._timing: tuple[int, float] | None = None
        self._expected = 0
        self._strays: set[int] = set()
        self._gone = False

    @property
    def done(self) -> bool:
        """Whether the client has acknowledged all offered bytes."""
        return self._una == self._offered

    def offer(self, size: int) -> None:
        """Send ``size`` more bytes; they share no segment with the bytes of earlier calls."""
        segments = max(1, math.ceil(size / MSS))
        self._offered += segments
        self._short[self._offered - 1] = size - (segments - 1) * MSS
        self._pump()

    def stop(self) -> None:
        """Stop sending: the client has left."""
        self._gone = True

    def _size(self, segment: int) -> int:
        return self._short.get(segment, MSS) + HEADERS

    def _pump(self) -> None:
        window = int(min(self._cwnd, self._plan.window_max))
        while self._next < self._offered and self._next - self._una < window:
            self._transmit(self._next)
            self._next += 1

    def _transmit(self, segment: int) -> None:
        now = self._clock.now
        back_s = self._send(self._size(segment))
        if back_s is not None:
            self._clock.after(back_s, self._acked, segment)
        if segment >= self._highest:
            self._highest = segment + 1
            if self._timing is None:
                self._timing = (segment, now)
        if math.isinf(self._deadline):
            self._arm(now)

    def _arm(self, now: float) -> None:
        self._deadline = now + min(self._rto * self._backoff, self._plan.rto_max_s)
        self._wake(now)

    def _wake(self, now: float) -> None:
        """Schedule a check of the retransmission timer no later than the deadline. A check that fires before the
        deadline schedules the next one, so moving the deadline costs no event."""
        if self._deadline < self._timer:
            self._timer = self._deadline
            self._clock.after(self._deadline - now, self._expired, self._deadline)

    def _expired(self, due: float) -> None:
        if due != self._timer:
            return
        self._timer = math.inf
        if self._gone or self.done:
            return
        now = self._clock.now
        if self._deadline > now + 1e-9:
            self._wake(now)
            return
        flight = self._next - self._una
        self._ssthresh, self._cwnd = max(flight / 2, 2.0), 1.0
        self._dup, self._recover, self._timing = 0, -1, None
        self._backoff = min(self._backoff * 2, 64.0)
        self._deadline = math.inf
        self._next = self._una
        self._pump()

    def _acked(self, segment: int) -> None:
        """Handle the acknowledgement that the client sent when it received this segment."""
        if self._gone:
            return
        self._receive(segment)
        if self._expected > self._una:
            self._advance(self._expected)
        elif self._next > self._una:
            self._dup += 1
            if self._recover >= 0:
                self._cwnd += 1
            elif self._dup == 3:
                self._ssthresh = max((self._next - self._una) / 2, 2.0)
                self._cwnd, self._recover, self._timing = self._ssthresh + 3, self._next, None
                self._transmit(self._una)
        self._pump()

    def _receive(self, segment: int) -> None:
        if segment != self._expected:
            if segment > self._expected:
                self._strays.add(segment)
            return
        count = 0
        while True:
            count += self._size(self._expected) - HEADERS
            self._expected += 1
            if self._expected not in self._strays:
                break
            self._strays.discard(self._expected)
        self._arrived(count)

    def _advance(self, ack: int) -> None:
        now = self._clock.now
        if self._timing is not None and ack > self._timing[0]:
            self._measure(now - self._timing[1])
            self._timing = None
        newly = ack - self._una
        self._una, self._backoff = ack, 1.0
        self._next = max(self._next, ack)
        if self._recover >= 0:
            if ack >= self._recover:
                self._cwnd, self._recover = self._ssthresh, -1
            else:  # a partial acknowledgement: retransmit the next missing segment (RFC 6582)
                self._cwnd = max(1.0, self._cwnd - newly + 1)
                self._transmit(ack)
        elif self._cwnd < self._ssthresh:
            self._cwnd += newly
        else:
            self._cwnd += newly / self._cwnd
        self._dup = 0
        if self._una == self._next and self.done:
            self._deadline = math.inf
        else:
            self._arm(now)

    def _measure(self, rtt: float) -> None:
        if self._srtt == 0:
            self._srtt, self._rttvar = rtt, rtt / 2
        else:
            self._rttvar += (abs(rtt - self._srtt) - self._rttvar) / 4
            self._srtt += (rtt - self._srtt) / 8
        self._rto = max(self._plan.rto_min_s, self._srtt + 4 * self._rttvar)
