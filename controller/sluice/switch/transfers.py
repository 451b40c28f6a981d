"""Stage transfers: cumulative measurements of sampled TCP transfers, and their differences over an interval.

Packets change the cells while the controller reads them. Therefore counts are cumulative and their differences wrap,
and a slot whose transfer is replaced by another during the reading is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice.dataplane.connection import FINGERPRINT_BITS
from sluice.dataplane.transfers import (
    EDGE_BITS,
    FLIGHT_BITS,
    FLIGHT_UNIT,
    INTERVAL_BITS,
    LEAST_BITS,
    LOSSES,
    SAMPLES_BITS,
    SEGMENTS_BITS,
    SERVER_BITS,
    STAMP_BITS,
    TIME_BITS,
)
from sluice.names import Register
from sluice.resources.need import Reading

from .registers import Registers

LEAST_RTO_S = 0.2
"""The least time that Linux adds to the smoothed round trip for its retransmission timeout; RFC 6298 requires 1 s for
the sum."""

_FLIGHT_CELLS = (Register.TRANSFER_EDGE, Register.TRANSFER_ACKED)
"""Registers that are read in one exchange. If they were read in two exchanges, a round trip might pass between them,
and the bytes in flight would seem to be 0."""
_CELLS = (
    Register.TRANSFER_ACTIVITY,
    Register.TRANSFER_LEAST,
    Register.TRANSFER_RTT,
    Register.TRANSFER_LOSSES,
    Register.TRANSFER_SENT,
    Register.TRANSFER_FLIGHT,
)
_LATER = 4
"""The largest number of intervals of TRANSFER_FLIGHT (2^INTERVAL_BITS us each) that may begin while the cells are
read."""

Counts = NDArray[np.int64]
Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Transfers:
    """Measurements of transfers: one element per slot in each column. Counts are cumulative from a transfer's
    beginning, and wrap at the stated width."""

    flow: Counts
    """Number of the connection's slot in the connection table, where the slots of way 2 follow those of way 1; -1: the
    slot has no transfer."""
    fingerprint: Counts
    server: Counts
    segments: Counts
    """Segments with payload, including retransmissions; 28 bits wide."""
    sent: Counts
    """Payload bytes sent, retransmissions not counted again; 35 bits wide."""
    again: Counts
    """Retransmitted segments; 16 bits wide."""
    losses: Counts
    """Loss events, at most one per window, as the sender counts them; 16 bits wide."""
    timeouts: Counts
    """Retransmissions after a silence, which count as timeouts; 11 bits wide."""
    probes: Counts
    """Retransmissions that are tail-loss probes; a probe is a loss event only if it repaired a loss. 10 bits wide."""
    holes: Counts
    """Segments that arrived although earlier segments, lost or delayed before the switch, were missing; 10 bits
    wide."""
    rtt_sum_us: Counts
    """Sum of the round-trip samples, in microseconds; 40 bits wide."""
    rtt_count: Counts
    """Number of round-trip samples; 23 bits wide."""
    least_rtt_s: Times
    """Least round trip of the last minutes, in seconds; NaN before the first sample."""
    flight: Counts
    """Largest number of bytes in flight in the last one to two seconds, rounded up by at most 63 bytes; 0 if nothing
    was sent."""
    under_way: Counts
    """Bytes not yet acknowledged; wrong by a packet or two if the cells changed while they were read."""
    mss: Counts
    """The largest segment's payload, in bytes."""
    silent_s: Times
    """Seconds since the slot's last packet, relative to the latest packet of all slots."""

    @property
    def rtt_s(self) -> Times:
        """The mean round trip of the complete transfer, in seconds; NaN without a sample."""
        return _mean(self.rtt_sum_us, self.rtt_count)

    def since(self, before: Transfers | None) -> Reading:
        """Return the changes since the reading ``before``. Without ``before``, or for a slot with a new transfer,
        return the full counts."""
        same = np.zeros(self.flow.size, np.bool_)
        if before is not None:
            same = (self.flow == before.flow) & (self.fingerprint == before.fingerprint) & (self.sent >= before.sent)

        def change(name: str, bits: int) -> Counts:
            now: Counts = getattr(self, name)
            then: Counts = np.where(same, getattr(before, name), 0) if before is not None else np.zeros_like(now)
            return (now - then) & ((1 << bits) - 1)

        widths = {name: width for name, (_, width) in LOSSES.items()}
        rtt_s = _mean(change("rtt_sum_us", 40), change("rtt_count", SAMPLES_BITS))
        return Reading(
            segments=change("segments", SEGMENTS_BITS).astype(np.float64),
            losses=change("losses", widths["losses"]).astype(np.float64),
            timeouts=change("timeouts", widths["timeouts"]).astype(np.float64),
            rtt_s=rtt_s,
            rto_s=np.where(np.isnan(rtt_s), self.rtt_s, rtt_s) + LEAST_RTO_S,
            mss=self.mss.astype(np.float64),
            flight=self.flight.astype(np.float64),
            under_way=np.minimum(self.under_way, self.flight).astype(np.float64),
            is_new=~same,
        )


def decode(cells: Mapping[Register, NDArray[np.uint64]]) -> Transfers:
    """Return the columns from complete registers, either of the switch or of its model."""
    column = {register: values.astype(np.int64) for register, values in cells.items()}
    owner, edge = column[Register.TRANSFER_OWNER], column[Register.TRANSFER_EDGE]
    sent, rtt = column[Register.TRANSFER_SENT], column[Register.TRANSFER_RTT]
    server = _field(owner, STAMP_BITS, SERVER_BITS)
    is_owned = server != 0
    place = owner >> (STAMP_BITS + SERVER_BITS + FINGERPRINT_BITS)
    least = _field(column[Register.TRANSFER_LEAST], 0, LEAST_BITS)
    activity = _field(column[Register.TRANSFER_ACTIVITY], 0, TIME_BITS)
    latest = int(activity.max(initial=0))
    silent_us = latest - activity
    counts = {name: _field(column[Register.TRANSFER_LOSSES], *field) for name, field in LOSSES.items()}
    right = _field(edge, 0, EDGE_BITS)
    return Transfers(
        flow=np.where(is_owned, place * owner.size + np.arange(owner.size), -1),
        fingerprint=_field(owner, STAMP_BITS + SERVER_BITS, FINGERPRINT_BITS),
        server=server,
        segments=_field(sent, 0, SEGMENTS_BITS),
        sent=_field(sent, SEGMENTS_BITS, 35),
        **counts,
        rtt_sum_us=_field(rtt, SAMPLES_BITS, 40),
        rtt_count=_field(rtt, 0, SAMPLES_BITS),
        least_rtt_s=np.where(least > 0, least / 1e6, np.nan),
        flight=_flight(column[Register.TRANSFER_FLIGHT], latest, silent_us),
        under_way=(right - _field(column[Register.TRANSFER_ACKED], 0, EDGE_BITS)) % (1 << EDGE_BITS),
        mss=_field(edge, EDGE_BITS, 16),
        silent_s=np.where(is_owned, silent_us / 1e6, np.nan),
    )


async def read(registers: Registers) -> Transfers:
    """Read all slots. Raises SwitchError."""
    (owner,) = await registers.arrays([Register.TRANSFER_OWNER])
    columns = [*await registers.arrays(_FLIGHT_CELLS), *await registers.arrays(_CELLS)]
    (owner_after,) = await registers.arrays([Register.TRANSFER_OWNER])
    is_same = owner >> np.uint64(STAMP_BITS) == owner_after >> np.uint64(STAMP_BITS)
    owner = np.where(is_same, owner_after, np.uint64(0))
    return decode({Register.TRANSFER_OWNER: owner, **dict(zip((*_FLIGHT_CELLS, *_CELLS), columns, strict=True))})


def _field(cells: Counts, low: int, width: int) -> Counts:
    return cells >> low & (1 << width) - 1


def _mean(total_us: Counts, count: Counts) -> Times:
    return np.where(count > 0, total_us / np.maximum(count, 1) / 1e6, np.nan)


def _flight(cells: Counts, latest_us: int, silent_us: Counts) -> Counts:
    """A cell contains the largest flight of its latest interval and of the interval before. Return, in bytes, the
    larger of those that belong to the switch's current or previous interval; 0 if neither does.

    The cells are read after ``latest_us``, so a cell may belong to a later interval; its age then counts as 0. Interval
    numbers wrap after 9.5 hours, so the flight of a slot counts as 0 if the slot was silent for more than _LATER
    intervals.
    """
    age = ((latest_us >> INTERVAL_BITS) - (cells >> 2 * FLIGHT_BITS) + _LATER) % (1 << 15) - _LATER
    now, before = _field(cells, 0, FLIGHT_BITS), _field(cells, FLIGHT_BITS, FLIGHT_BITS)
    units = np.where(age <= 0, np.maximum(now, before), np.where(age == 1, now, 0))
    return np.where(silent_us >> INTERVAL_BITS <= _LATER, units, 0) * FLIGHT_UNIT
