"""The flows of one interval, put together from several readings of the switch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import ObservationError
from .rates import FlowRates

FlowKeys = NDArray[np.uint64]


class FlowCollector:
    """Each flow's last response rate. A cell that another flow takes over between two readings is lost, not wrong."""

    def __init__(self) -> None:
        self._keys: list[FlowKeys] = []
        self._rates: list[FlowRates] = []

    def add(self, keys: FlowKeys, rates: FlowRates) -> None:
        """Take in the flows that had packets since the last reading: a key each, and a rate in bit/s."""
        self._keys.append(keys)
        self._rates.append(rates)

    def take(self) -> tuple[FlowKeys, FlowRates]:
        """Key and rate, bit/s, of every flow since the last call."""
        keys, rates = newest(self._keys, self._rates)
        self._keys, self._rates = [], []
        return keys, rates


def matched(keys: FlowKeys | None, rates: FlowRates) -> FlowKeys | None:
    """The keys themselves; raises ObservationError unless there are as many as rates, or none are given."""
    if keys is not None and keys.size != rates.size:
        raise ObservationError(f"{keys.size} keys for {rates.size} flows: give one each")
    return keys


def newest(keys: Sequence[FlowKeys], rates: Sequence[FlowRates]) -> tuple[FlowKeys, FlowRates]:
    """Each flow once, by its last rate, from several readings in the order of time; O(n log n)."""
    if not keys:
        return np.zeros(0, np.uint64), np.zeros(0)
    # Backwards: of equal keys `unique` names the first.
    every = np.concatenate(keys[::-1])
    flows, first = np.unique(every, return_index=True)
    return flows, np.concatenate(rates[::-1])[first]
