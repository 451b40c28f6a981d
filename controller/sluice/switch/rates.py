"""Stage rates: which responses the switch measures, and the rates of the responses that had packets recently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from finsy import P4TableAction, P4TableEntry
from numpy.typing import NDArray

from sluice.config.model import NewsConfig
from sluice.dataplane.units import FREE_STEPS, MICROSECONDS, STEPS, Units
from sluice.names import Action, Register, Table
from sluice.news.flows import FlowKeys
from sluice.news.flowshare import Slots
from sluice.news.rates import FlowRates, flow_mask

from .registers import Registers
from .state import State

_LAST = np.uint64((1 << 32) - 1)
_HALF = np.uint64(1 << 31)
_Cells = NDArray[np.uint64]


def settings(state: State) -> Iterator[P4TableEntry]:
    """Yield the default action of the table of rate settings, which has no key. Without flash-crowd control the switch
    measures no responses."""
    options = state.plan.config.news
    step, mask = (state.units.step(options.rate_window_s), flow_mask(state.crowd.flow_share)) if options else (0, 0)
    action = P4TableAction(Action.SET_RATES, step_time=step, flow_mask=mask)
    yield P4TableEntry(Table.RATE_SETTINGS, is_default_action=True, action=action)


def decode(flow: _Cells, octets: _Cells, step: int, units: Units = MICROSECONDS) -> FlowRates:
    """Return rates in bit/s from cells of ``rate_flow`` (fingerprint, time of the last packet) and ``rate_bytes``.

    ``step``: the cells' step in ticks of ``units``, a power of two. A rate covers the last STEPS steps and the part of
    the present step until the last packet.

    On Tofino a cell of ``rate_bytes`` is a pair; one half contains the bytes of the last step's first packet
    (p4src/tna/externs/rate_cells.p4).
    """
    octets = (octets >> np.uint64(32)) + (octets & _LAST)
    fraction = (flow & _LAST) & np.uint64(step - 1)
    window_us = (fraction.astype(np.float64) + STEPS * step) * units.rate_tick_us
    return octets.astype(np.float64) * 8e6 / window_us


@dataclass(frozen=True, slots=True)
class FlowReading:
    """The flows that had packets since the previous reading: a key and a rate in bit/s for each."""

    keys: FlowKeys
    rates: FlowRates
    slots: Slots | None
    """The registers' occupancy. The newest packet's time serves as the current time, so this is None if no flow had a
    packet, and at the first reading."""


class FlowReader:
    """Reads ``rate_flow`` and ``rate_bytes`` completely, and reports which flows had packets since the previous
    reading."""

    def __init__(self) -> None:
        self._before: tuple[_Cells, _Cells] | None = None
        self._newest: int | None = None
        """Time of the newest packet at the previous reading, in the cells' ticks."""

    def rebase(self) -> None:
        """Discard the previous reading, so that the next reading only serves as a base for later ones."""
        self._before = self._newest = None

    async def read(self, registers: Registers, options: NewsConfig) -> FlowReading:
        """Return the flows that had packets since the previous call; none at the first call. Raises SwitchError."""
        flow, octets = await registers.arrays([Register.RATE_FLOW, Register.RATE_BYTES])
        before, self._before = self._before, (flow, octets)
        if before is None:
            return FlowReading(np.zeros(0, np.uint64), np.zeros(0), None)
        slots = np.flatnonzero(((flow != before[0]) | (octets != before[1])) & (flow != 0))
        fingerprints = flow[slots] >> np.uint64(32 + registers.units.rate_slot_bits)
        keys = slots.astype(np.uint64) << np.uint64(32) | fingerprints
        step = registers.units.step(options.rate_window_s)
        rates = decode(flow[slots], octets[slots], step, registers.units)
        return FlowReading(keys, rates, self._slots(flow, flow[slots], step, registers.units))

    def _slots(self, flow: _Cells, changed: _Cells, step: int, units: Units) -> Slots | None:
        """Return the registers' occupancy at the newest packet's time.

        The newest packet is sought only among cells that have changed: older cells may date from before the clock
        wrapped.
        """
        if changed.size == 0:
            return None
        times = changed & _LAST
        ahead = (times - times[0] + _HALF) & _LAST
        newest = (int(times[0]) + int(ahead.max()) - int(_HALF)) & int(_LAST)
        before, self._newest = newest if self._newest is None else self._newest, newest
        free_after = FREE_STEPS * step
        age = (np.uint64(newest) - (flow & _LAST)) & _LAST
        tick_s = units.rate_tick_us / 1e6
        occupied = float(np.mean((flow != 0) & (age <= np.uint64(free_after))))
        return Slots(occupied, max(0, _signed(newest - before)) * tick_s, free_after * tick_s)


def _signed(difference: int) -> int:
    """Return a difference of two 32-bit times as a signed number."""
    half = int(_HALF)
    return (difference + half) % (2 * half) - half
