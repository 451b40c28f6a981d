"""The flows of one interval, put together from several readings of the switch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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

    def take(self) -> FlowRates:
        """The rate of every flow since the last call, bit/s, in no order; O(n log n)."""
        if not self._keys:
            return np.zeros(0)
        # Newest first: of equal keys `unique` names the first.
        keys = np.concatenate(self._keys[::-1])
        rates = np.concatenate(self._rates[::-1])
        _, first = np.unique(keys, return_index=True)
        self._keys, self._rates = [], []
        return rates[first]
