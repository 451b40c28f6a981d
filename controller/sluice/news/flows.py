"""The flows of one interval, put together from several readings of the switch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import ObservationError
from .rates import FlowRates, flow_mask

FlowKeys = NDArray[np.uint64]
"""What tells flows apart. Its low bits are the flow's fingerprint, by which the part is drawn that is measured."""


class FlowCollector:
    """Each flow's last response rate. A cell that another flow takes over between two readings is lost, not wrong."""

    def __init__(self) -> None:
        self._keys: list[FlowKeys] = []
        self._rates: list[FlowRates] = []
        self.share = 1.0
        """The least part of the flows that was measured since the last call of ``take``."""

    def add(self, keys: FlowKeys, rates: FlowRates, share: float = 1.0) -> None:
        """Take in the flows that had packets since the last reading, of a part of all: a key each, and a rate in
        bit/s."""
        self._keys.append(keys)
        self._rates.append(rates)
        self.share = min(self.share, share)

    def take(self) -> tuple[FlowKeys, FlowRates]:
        """Key and rate, bit/s, of every flow since the last call; of the part that was measured all the time."""
        flows = sampled(*newest(self._keys, self._rates), self.share)
        self._keys, self._rates, self.share = [], [], 1.0
        return flows


def matched(keys: FlowKeys | None, rates: FlowRates) -> FlowKeys | None:
    """The keys themselves; raises ObservationError unless there are as many as rates, or none are given."""
    if keys is not None and keys.size != rates.size:
        raise ObservationError(f"{keys.size} keys for {rates.size} flows: give one each")
    return keys


def sampled(keys: FlowKeys, rates: FlowRates, share: float) -> tuple[FlowKeys, FlowRates]:
    """The flows that are measured when a part of all is: a time when more were must not count for more."""
    mask = flow_mask(share)
    if mask == 0:
        return keys, rates
    chosen = (keys & np.uint64(mask)) == 0
    return keys[chosen], rates[chosen]


def newest(keys: Sequence[FlowKeys], rates: Sequence[FlowRates]) -> tuple[FlowKeys, FlowRates]:
    """Each flow once, by its last rate, from several readings in the order of time; O(n log n)."""
    if not keys:
        return np.zeros(0, np.uint64), np.zeros(0)
    # Backwards: of equal keys `unique` names the first.
    every = np.concatenate(keys[::-1])
    flows, first = np.unique(every, return_index=True)
    return flows, np.concatenate(rates[::-1])[first]
