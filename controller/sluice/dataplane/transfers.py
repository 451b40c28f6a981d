"""Measured transfers as the switch keeps them, packet by packet (docs/reference/resources.md)."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from sluice.names import CONNECTION_SLOTS, TRANSFERS, PinState, Register

from .connection import FINGERPRINT_BITS
from .memory import Memory
from .pins import ACK, FIN, Event, event

OWNED_TICKS = 458
"""A slot is free behind so many ticks without a packet of its owner: 30 s."""
UNANSWERED_TICKS, ENDED_TICKS = OWNED_TICKS - 61, OWNED_TICKS - 31
"""What the stamps of unanswered and of ended connections are set back by: their slots are free after 4 and 2 s."""
TIMEOUT_US = 150_000
"""A retransmission behind a silence of both sides is a timeout's, if that is longer by an eighth of the round trip."""
FLIGHT_UNIT = 64
"""Bytes."""
INTERVAL_BITS, PERIOD_BITS = 20, 28
"""Of a time in microseconds: flights are of intervals of 2^20, the least round trip of a period of 2^28."""

STAMP_BITS, SERVER_BITS = 16, 10
SENT_AT_BITS, SAMPLES_BITS, SEGMENTS_BITS = 31, 23, 28
FLIGHT_BITS, LEAST_BITS, EDGE_BITS = 24, 32, 32
TIME_BITS = 48
"""Of a cell of ``transfer_activity``: a time in microseconds; the bit above it: the packet was the last segment."""
JUDGED_BITS = 4
"""Of a cell of ``transfer_recovery``: the data offset of a tail-loss probe that waits for its judgement, or 0."""
LOSSES = {"again": (47, 16), "losses": (31, 16), "timeouts": (20, 11), "probes": (10, 10), "holes": (0, 10)}
"""Fields of a cell of ``transfer_losses``: lowest bit and width."""

_WRAP, _HALF = 1 << 32, 1 << 31
_SPAN = (1 << SENT_AT_BITS) - 1
_MOST = (1 << FLIGHT_BITS) - 1


class Flow(NamedTuple):
    """Whose packet it is."""

    number: int
    """Of its slot in the connection table, both ways in one (``flow_index``)."""
    fingerprint: int
    server: int

    @property
    def slot(self) -> int:
        """Where it is measured, if it is."""
        return self.number % TRANSFERS

    @property
    def key(self) -> int:
        """The upper bits of its owner's cell."""
        return self.number // TRANSFERS << FINGERPRINT_BITS | self.fingerprint


class Segment(NamedTuple):
    """A TCP segment of the connection, and what it has made of the pin."""

    by_server: bool
    sequence: int
    acknowledgement: int
    payload: int
    """Bytes."""
    flags: int
    before: PinState = PinState.ESTABLISHED
    after: PinState = PinState.ESTABLISHED
    moved: bool = False
    """It has moved the pin to the server that is a candidate's."""
    window: int = 0xFFFF
    """As in the header."""
    data_offset: int = 5
    """The header's length in words of 32 bits."""


class Kind(Enum):
    """What a segment of the server's with payload is, by its number."""

    NONE = auto()
    NEXT = auto()
    AHEAD = auto()
    AGAIN = auto()


def flow_index(way: int, slot: int) -> int:
    """The number of a slot of way 0 or 1 of the connection table."""
    return way * CONNECTION_SLOTS + slot


def is_sampled(fingerprint: int, sampling: int) -> bool:
    """Whether the connection is one of the 2^-sampling that are measured."""
    return fingerprint & ((1 << sampling) - 1) == 0


class TransferCells:
    """The registers of transfers, kept up to date packet by packet."""

    def __init__(self, memory: Memory) -> None:
        self._owner, self._edge = memory.of(Register.TRANSFER_OWNER), memory.of(Register.TRANSFER_EDGE)
        self._acked, self._activity = memory.of(Register.TRANSFER_ACKED), memory.of(Register.TRANSFER_ACTIVITY)
        self._probe, self._least = memory.of(Register.TRANSFER_PROBE), memory.of(Register.TRANSFER_LEAST)
        self._rtt, self._recovery = memory.of(Register.TRANSFER_RTT), memory.of(Register.TRANSFER_RECOVERY)
        self._losses, self._sent = memory.of(Register.TRANSFER_LOSSES), memory.of(Register.TRANSFER_SENT)
        self._flight, self._hole = memory.of(Register.TRANSFER_FLIGHT), memory.of(Register.TRANSFER_HOLE)

    def packet(self, now_us: int, flow: Flow, segment: Segment) -> bool:
        """A packet between client and pinned server; whether the slot is its connection's."""
        what = event(segment.flags, segment.payload)
        answers = segment.by_server and what is Event.SYN_ACK
        begins = answers and segment.after is PinState.ANSWERED and segment.before is not PinState.ANSWERED
        if not self._owns(now_us, flow, segment, segment.moved or begins):
            return False
        if segment.moved:
            self._start(now_us, flow.slot, segment.acknowledgement, timed=False)
        elif begins:
            self._start(now_us, flow.slot, (segment.sequence + 1) % _WRAP, timed=True)
        elif answers:
            self._probe[flow.slot] &= ~_SPAN
        elif what in (Event.RESET, Event.SYN):
            pass
        elif segment.by_server:
            if segment.payload or what is Event.FIN:
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
            kind = Kind.AGAIN
        follows, time_us = divmod(self._activity[slot], 1 << TIME_BITS)
        silence = now_us - time_us
        self._active(now_us, slot, ends=end == edge)
        if kind is Kind.AGAIN:
            self._probe[slot] &= ~_SPAN
            if not self._fills(now_us, slot, sequence):
                self._again(slot, segment, silence, edge, ends=end == edge == before, follows=bool(follows))
        elif kind is Kind.AHEAD:
            self._opens(now_us, slot, before)
            self._count(slot, "holes")
        elif not self._probe[slot] & _SPAN:
            self._probe[slot] = edge << SENT_AT_BITS | _span(now_us)
        octets, segments = divmod(self._sent[slot], 1 << SEGMENTS_BITS)
        octets = (octets + (edge - before) % _WRAP) % (1 << 35)
        self._sent[slot] = octets << SEGMENTS_BITS | (segments + 1) % (1 << SEGMENTS_BITS)
        self._fly(now_us, slot, (edge - acked) % _WRAP)

    def _active(self, now_us: int, slot: int, *, ends: bool = False) -> None:
        """A packet has moved or sent something; ``ends``: it is the last segment that was sent."""
        self._activity[slot] = ends << TIME_BITS | now_us

    def _opens(self, now_us: int, slot: int, start: int) -> None:
        """A hole opens: it is remembered, unless there is one that is younger than a round trip."""
        if not self._is_young(now_us, slot):
            self._hole[slot] = start << SENT_AT_BITS | _span(now_us)

    def _fills(self, now_us: int, slot: int, sequence: int) -> bool:
        """Whether a segment fills a hole sooner than a retransmission can: it was late, and is no loss."""
        start = self._hole[slot] >> SENT_AT_BITS
        return self._is_young(now_us, slot) and not _later(start, sequence)

    def _is_young(self, now_us: int, slot: int) -> bool:
        opened = self._hole[slot] & _SPAN
        return opened != 0 and (_span(now_us) - opened) & _SPAN < _field(self._least[slot], 0, LEAST_BITS)

    def _again(self, slot: int, segment: Segment, silence: int, edge: int, *, ends: bool, follows: bool) -> None:
        """A retransmission; ``ends``: of the last segment that was sent; ``follows``: it comes directly behind that.

        Sooner than an ACK can come back, the latter is a copy that the network made.
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
        """What an acknowledgement says of a tail-loss probe: whether that has repaired a loss."""
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

    def _fly(self, now_us: int, slot: int, octets: int) -> None:
        flight = min(_MOST, -(-octets // FLIGHT_UNIT))
        interval, rest = divmod(self._flight[slot], 1 << 2 * FLIGHT_BITS)
        before, largest = divmod(rest, 1 << FLIGHT_BITS)
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
    return Kind.NONE if payload == 1 and end == edge else Kind.AGAIN


def _field(cell: int, low: int, width: int) -> int:
    return cell >> low & (1 << width) - 1


def _later(a: int, b: int) -> bool:
    return 0 < (a - b) % _WRAP < _HALF


def _span(now_us: int) -> int:
    """The time of a probe; 0 stands for none."""
    return now_us & _SPAN | 1


def _period(now_us: int) -> int:
    return _field(now_us, PERIOD_BITS, 16)


def _interval(now_us: int) -> int:
    return _field(now_us, INTERVAL_BITS, 15)
