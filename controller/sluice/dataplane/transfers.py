"""Measures TCP transfers as the switch does: each packet updates registers (docs/reference/resources.md)."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from sluice.names import CONNECTION_SLOTS, TRANSFERS, PinState, Register

from .connection import FINGERPRINT_BITS
from .memory import Memory
from .pins import ACK, FIN, Event, event

OWNED_TICKS = 458
"""Ticks of 2^16 us after the last packet of the connection that a slot measures until the slot is free: 30 s."""
UNANSWERED_TICKS, ENDED_TICKS = OWNED_TICKS - 61, OWNED_TICKS - 31
"""Ticks by which the switch sets back the stamps of unanswered and of ended connections, so that their slots are free
after 4 s and 2 s."""
TIMEOUT_US = 150_000
"""A retransmission counts as a timeout if both sides were silent before it for longer than this time, in microseconds,
plus an eighth of the least round trip."""
FLIGHT_UNIT = 64
"""The number of bytes in one unit of a cell that stores a flight (bytes in flight)."""
INTERVAL_BITS, PERIOD_BITS = 20, 28
"""Lowest bits of the interval number and of the period number in a time in microseconds. The largest flight is
determined for each interval of 2^20 us, the least round trip for each period of 2^28 us."""

STAMP_BITS, SERVER_BITS = 16, 10
SENT_AT_BITS, SAMPLES_BITS, SEGMENTS_BITS = 31, 23, 28
FLIGHT_BITS, LEAST_BITS, EDGE_BITS = 24, 32, 32
TIME_BITS = 48
"""Width of the time in a cell of ``transfer_activity``, in microseconds. The bit above the time is set if the last
packet was the latest segment sent."""
JUDGED_BITS = 4
"""Width of a field in ``transfer_recovery``: the data offset of a tail-loss probe whose acknowledgement is outstanding,
or 0."""
LOSSES = {"again": (47, 16), "losses": (31, 16), "timeouts": (20, 11), "probes": (10, 10), "holes": (0, 10)}
"""Fields of a cell of ``transfer_losses``: lowest bit and width."""

_WRAP, _HALF = 1 << 32, 1 << 31
_SPAN = (1 << SENT_AT_BITS) - 1
_MOST = (1 << FLIGHT_BITS) - 1


class Flow(NamedTuple):
    """A measured connection, by its slot in the connection table."""

    number: int
    """The number of the slot in the connection table, where the slots of way 2 follow those of way 1
    (``flow_index``)."""
    fingerprint: int
    server: int

    @property
    def slot(self) -> int:
        """The index of the cells that measure the connection, if it is measured."""
        return self.number % TRANSFERS

    @property
    def key(self) -> int:
        """The connection's identity in the upper bits of the owner cell."""
        return self.number // TRANSFERS << FINGERPRINT_BITS | self.fingerprint


class Segment(NamedTuple):
    """A TCP segment of the connection, and the state of the connection's entry before and after the segment."""

    by_server: bool
    sequence: int
    acknowledgement: int
    payload: int
    """Length of the payload in bytes."""
    flags: int
    before: PinState = PinState.ESTABLISHED
    after: PinState = PinState.ESTABLISHED
    moved: bool = False
    """Whether the segment has changed the server of the connection's entry."""
    window: int = 0xFFFF
    """The window field of the header, unscaled."""
    data_offset: int = 5
    """Length of the TCP header in words of 32 bits."""


class Kind(Enum):
    """The kind of a server's segment with payload, by its sequence number."""

    NONE = auto()
    """The segment has only the last byte before the edge (the end of the data sent). It is a keepalive if all data is
    acknowledged, or a probe if the client's window is closed; otherwise it counts as REPEATED."""
    NEXT = auto()
    """The segment has new data that begins at the edge."""
    AHEAD = auto()
    """The segment has new data beyond the edge: segments before it are missing."""
    REPEATED = auto()
    """The segment has data that was sent before."""


def flow_index(way: int, slot: int) -> int:
    """Return the number of a slot in way 0 or 1 of the connection table."""
    return way * CONNECTION_SLOTS + slot


def is_sampled(fingerprint: int, sampling: int) -> bool:
    """Return whether the connection is among the 1 in 2^sampling that are measured."""
    return fingerprint & ((1 << sampling) - 1) == 0


class TransferCells:
    """The registers of transfers, which each packet updates."""

    def __init__(self, memory: Memory) -> None:
        self._owner, self._edge = memory.of(Register.TRANSFER_OWNER), memory.of(Register.TRANSFER_EDGE)
        self._acked, self._activity = memory.of(Register.TRANSFER_ACKED), memory.of(Register.TRANSFER_ACTIVITY)
        self._probe, self._least = memory.of(Register.TRANSFER_PROBE), memory.of(Register.TRANSFER_LEAST)
        self._rtt, self._recovery = memory.of(Register.TRANSFER_RTT), memory.of(Register.TRANSFER_RECOVERY)
        self._losses, self._sent = memory.of(Register.TRANSFER_LOSSES), memory.of(Register.TRANSFER_SENT)
        self._flight, self._hole = memory.of(Register.TRANSFER_FLIGHT), memory.of(Register.TRANSFER_HOLE)

    def packet(self, now_us: int, flow: Flow, segment: Segment) -> bool:
        """Handle a packet between a client and its connection's server. Returns whether the cells at ``flow.slot``
        measure this connection, and not another one or none."""
        kind = event(segment.flags, segment.payload)
        answers = segment.by_server and kind is Event.SYN_ACK
        begins = answers and segment.after is PinState.ANSWERED and segment.before is not PinState.ANSWERED
        if not self._owns(now_us, flow, segment, segment.moved or begins):
            return False
        if segment.moved:
            self._start(now_us, flow.slot, segment.acknowledgement, timed=False)
        elif begins:
            self._start(now_us, flow.slot, (segment.sequence + 1) % _WRAP, timed=True)
        elif answers:
            self._probe[flow.slot] &= ~_SPAN
        elif kind in (Event.RESET, Event.SYN):
            pass
        elif segment.by_server:
            if segment.payload or kind is Event.FIN:
                self._data(now_us, flow.slot, segment)
        elif segment.flags & ACK:
            self._ack(now_us, flow.slot, segment)
        return True

    def _owns(self, now_us: int, flow: Flow, segment: Segment, begins: bool) -> bool:
        cell, stamp = self._owner[flow.slot], now_us >> 16
        key, server = cell >> SERVER_BITS + STAMP_BITS, _field(cell, STAMP_BITS, SERVER_BITS)
        mine = key == flow.key and server != 0
        free = server == 0 or _field(stamp - cell, 0, STAMP_BITS) > OWNED_TICKS
        if not mine and not (free and begins):
            return False
        if segment.after is PinState.ANSWERED:
            stamp -= UNANSWERED_TICKS
        elif segment.after >= PinState.SERVER_CLOSING:
            stamp -= ENDED_TICKS
        owner = flow.key << SERVER_BITS | flow.server
        self._owner[flow.slot] = owner << STAMP_BITS | _field(stamp, 0, STAMP_BITS)
        return True

    def _start(self, now_us: int, slot: int, first: int, *, timed: bool) -> None:
        self._edge[slot] = self._acked[slot] = first
        self._recovery[slot] = first << JUDGED_BITS
        self._hole[slot] = 0
        self._active(now_us, slot)
        self._probe[slot] = first << SENT_AT_BITS | (_span(now_us) if timed else 0)
        self._least[slot] = _period(now_us) << LEAST_BITS
        self._rtt[slot] = self._losses[slot] = self._sent[slot] = 0
        self._flight[slot] = _interval(now_us) << 2 * FLIGHT_BITS

    def _data(self, now_us: int, slot: int, segment: Segment) -> None:
        largest, before = divmod(self._edge[slot], 1 << EDGE_BITS)
        sequence = segment.sequence
        end = (sequence + segment.payload + (1 if segment.flags & FIN else 0)) % _WRAP
        edge = end if _later(end, before) else before
        self._edge[slot] = max(largest, segment.payload) << EDGE_BITS | edge
        if not segment.payload:
            return
        kind = _kind(sequence, segment.payload, end, before)
        closed, acked = divmod(self._acked[slot], 1 << EDGE_BITS)
        if kind is Kind.NONE:
            if acked == edge or closed:
                return
            kind = Kind.REPEATED
        follows, time_us = divmod(self._activity[slot], 1 << TIME_BITS)
        silence = now_us - time_us
        self._active(now_us, slot, ends=end == edge)
        if kind is Kind.REPEATED:
            self._probe[slot] &= ~_SPAN
            if not self._fills(now_us, slot, sequence):
                self._count_repeat(slot, segment, silence, edge, ends=end == edge == before, follows=bool(follows))
        elif kind is Kind.AHEAD:
            self._opens(now_us, slot, before)
            self._count(slot, "holes")
        elif not self._probe[slot] & _SPAN:
            self._probe[slot] = edge << SENT_AT_BITS | _span(now_us)
        octets, segments = divmod(self._sent[slot], 1 << SEGMENTS_BITS)
        octets = (octets + (edge - before) % _WRAP) % (1 << 35)
        self._sent[slot] = octets << SEGMENTS_BITS | (segments + 1) % (1 << SEGMENTS_BITS)
        self._record_flight(now_us, slot, (edge - acked) % _WRAP)

    def _active(self, now_us: int, slot: int, *, ends: bool = False) -> None:
        """Record the time of a packet with data or a valid acknowledgement. ``ends``: the packet is the latest segment
        sent."""
        self._activity[slot] = ends << TIME_BITS | now_us

    def _opens(self, now_us: int, slot: int, start: int) -> None:
        """Record a hole at ``start``, unless a hole is recorded that is younger than the least round trip."""
        if not self._is_young(now_us, slot):
            self._hole[slot] = start << SENT_AT_BITS | _span(now_us)

    def _fills(self, now_us: int, slot: int, sequence: int) -> bool:
        """Return whether a segment fills a hole earlier than a retransmission could; such a segment was delayed, not
        lost."""
        start = self._hole[slot] >> SENT_AT_BITS
        return self._is_young(now_us, slot) and not _later(start, sequence)

    def _is_young(self, now_us: int, slot: int) -> bool:
        opened = self._hole[slot] & _SPAN
        return opened != 0 and (_span(now_us) - opened) & _SPAN < _field(self._least[slot], 0, LEAST_BITS)

    def _count_repeat(self, slot: int, segment: Segment, silence: int, edge: int, *, ends: bool, follows: bool) -> None:
        """Count a retransmission. ``ends``: it repeats the latest segment sent; ``follows``: it directly follows that
        segment.

        If both are true and at most the least round trip has passed, the segment is a duplicate made by the network,
        and is not counted.
        """
        least = _field(self._least[slot], 0, LEAST_BITS)
        if ends and follows and least and silence <= least:
            return
        point, judged = divmod(self._recovery[slot], 1 << JUDGED_BITS)
        is_new = not _later(point, segment.sequence)
        is_probe = bool(ends and least and silence > least and is_new and not judged)
        self._count(slot, "again")
        if is_probe:
            self._count(slot, "probes")
        elif silence > TIMEOUT_US + (least >> 3):
            self._count(slot, "timeouts")
        if is_probe:
            self._recovery[slot] = edge << JUDGED_BITS | segment.data_offset
        elif is_new or judged:
            self._count(slot, "losses")
            self._recovery[slot] = edge << JUDGED_BITS

    def _ack(self, now_us: int, slot: int, segment: Segment) -> None:
        number = segment.acknowledgement
        edge, acked = _field(self._edge[slot], 0, EDGE_BITS), _field(self._acked[slot], 0, EDGE_BITS)
        if (number - acked) % _WRAP > (edge - acked) % _WRAP:
            return
        self._acked[slot] = (segment.window == 0) << EDGE_BITS | number
        self._active(now_us, slot)
        expected, sent_at = divmod(self._probe[slot], 1 << SENT_AT_BITS)
        if sent_at and not _later(expected, number):
            self._probe[slot] = expected << SENT_AT_BITS
            self._sample(now_us, slot, (_span(now_us) - sent_at) & _SPAN | 1)
        self._recover(slot, segment, number != acked)

    def _recover(self, slot: int, segment: Segment, advances: bool) -> None:
        """Move the recovery point up to an acknowledgement. If the acknowledgement reaches this point while the one of
        a tail-loss probe is outstanding, decide whether the probe has repaired a loss, and count that loss."""
        number = segment.acknowledgement
        point, judged = divmod(self._recovery[slot], 1 << JUDGED_BITS)
        is_beyond = _later(number, point)
        if judged and (is_beyond or number == point):
            if segment.data_offset > judged or not (is_beyond or advances):
                judged = 0
            elif is_beyond:
                self._count(slot, "losses")
                judged = 0
        self._recovery[slot] = (number if is_beyond else point) << JUDGED_BITS | judged

    def _sample(self, now_us: int, slot: int, sample: int) -> None:
        period, least = divmod(self._least[slot], 1 << LEAST_BITS)
        if not least or period != _period(now_us) or sample < least:
            self._least[slot] = _period(now_us) << LEAST_BITS | sample
        total, samples = divmod(self._rtt[slot], 1 << SAMPLES_BITS)
        self._rtt[slot] = (total + sample) % (1 << 40) << SAMPLES_BITS | (samples + 1) % (1 << SAMPLES_BITS)

    def _record_flight(self, now_us: int, slot: int, octets: int) -> None:
        flight = min(_MOST, -(-octets // FLIGHT_UNIT))
        interval, flights = divmod(self._flight[slot], 1 << 2 * FLIGHT_BITS)
        before, largest = divmod(flights, 1 << FLIGHT_BITS)
        now = _interval(now_us)
        if interval == now:
            flight = max(flight, largest)
        else:
            before = largest if (interval + 1) % (1 << 15) == now else 0
        self._flight[slot] = (now << FLIGHT_BITS | before) << FLIGHT_BITS | flight

    def _count(self, slot: int, name: str) -> None:
        low, width = LOSSES[name]
        count = _field(self._losses[slot], low, width)
        self._losses[slot] += (_field(count + 1, 0, width) - count) << low


def _kind(sequence: int, payload: int, end: int, edge: int) -> Kind:
    if sequence == edge:
        return Kind.NEXT
    if _later(sequence, edge):
        return Kind.AHEAD
    return Kind.NONE if payload == 1 and end == edge else Kind.REPEATED


def _field(cell: int, low: int, width: int) -> int:
    return cell >> low & (1 << width) - 1


def _later(a: int, b: int) -> bool:
    return 0 < (a - b) % _WRAP < _HALF


def _span(now_us: int) -> int:
    """Return the time in the form that a round-trip probe's field stores; 0 is reserved for "no probe"."""
    return now_us & _SPAN | 1


def _period(now_us: int) -> int:
    return _field(now_us, PERIOD_BITS, 16)


def _interval(now_us: int) -> int:
    return _field(now_us, INTERVAL_BITS, 15)
