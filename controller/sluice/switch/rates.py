"""Stage rates: which responses are measured, and the rates of those that had packets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from finsy import P4TableAction, P4TableEntry
from numpy.typing import NDArray

from sluice.config import NewsConfig
from sluice.names import Action, Register, Table
from sluice.news.flows import FlowKeys
from sluice.news.rates import FlowRates, measured_share

from .registers import Registers
from .state import State
from .targets.units import MICROSECONDS, STEPS, Units

_LAST = np.uint64((1 << 32) - 1)
_Cells = NDArray[np.uint64]


def flow_mask(share: float) -> int:
    """The mask that leaves the part of the flows nearest to ``share``: 1/2^n."""
    return round(1 / measured_share(share)) - 1


def settings(state: State) -> Iterator[P4TableEntry]:
    """The default action of the keyless table; off without flash-crowd control."""
    options = state.plan.config.news
    step, mask = (state.units.step(options.rate_window_s), flow_mask(options.flow_share)) if options else (0, 0)
    action = P4TableAction(Action.SET_RATES, step_time=step, flow_mask=mask)
    yield P4TableEntry(Table.RATE_SETTINGS, is_default_action=True, action=action)


def decode(flow: _Cells, octets: _Cells, step: int, units: Units = MICROSECONDS) -> FlowRates:
    """Rates in bit/s from cells of ``rate_flow`` (fingerprint, time of the last packet) and ``rate_bytes``."""
    part = (flow & _LAST) & np.uint64(step - 1)
    window_us = (part.astype(np.float64) + STEPS * step) * units.rate_tick_us
    return octets.astype(np.float64) * 8e6 / window_us


class FlowReader:
    """Reads both registers whole and tells which flows had packets since the reading before."""

    def __init__(self) -> None:
        self._before: tuple[_Cells, _Cells] | None = None

    def rebase(self) -> None:
        """The next reading is only a base."""
        self._before = None

    async def read(self, registers: Registers, options: NewsConfig) -> tuple[FlowKeys, FlowRates]:
        """A key and a rate in bit/s for each such flow; none the first time. Raises SwitchError."""
        flow, octets = await registers.arrays([Register.RATE_FLOW, Register.RATE_BYTES])
        before, self._before = self._before, (flow, octets)
        if before is None:
            return np.zeros(0, np.uint64), np.zeros(0)
        slots = np.flatnonzero(((flow != before[0]) | (octets != before[1])) & (flow != 0))
        fingerprints = flow[slots] >> np.uint64(32)
        keys = slots.astype(np.uint64) << np.uint64(32) | fingerprints
        step = registers.units.step(options.rate_window_s)
        return keys, decode(flow[slots], octets[slots], step, registers.units)
