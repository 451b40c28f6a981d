"""AR, the transmission rate of the high-bandwidth response flows (section 4.1 of Chen & Heidemann)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .errors import ObservationError

FlowRates = NDArray[np.float64]
"""Response rate of each flow, in bit/s."""


HALVINGS_MOST = 20
"""The smallest part of the flows that is measured is 1/2^HALVINGS_MOST."""


def checked(rates: NDArray[np.generic]) -> FlowRates:
    """Return the rates as a flat array of doubles. Raises ObservationError unless all are finite and not negative."""
    flat = np.asarray(rates, dtype=np.float64).ravel()
    bad = np.flatnonzero(~(np.isfinite(flat) & (flat >= 0)))
    if bad.size:
        raise ObservationError(
            f"flow rate {flat[bad[0]]} at index {int(bad[0])} is no rate: leave out flows that were not measured"
        )
    return flat


def measured_share(share: float) -> float:
    """Return the part of the flows that the switch measures for a configured ``share``: the nearest 1/2^n."""
    return 2.0 ** -min(HALVINGS_MOST, round(-math.log2(share)))


def flow_mask(share: float) -> int:
    """Return the bit mask that selects the part of the flows nearest to ``share``. It selects flows whose fingerprint
    has only zeros in the mask's bits."""
    return round(1 / measured_share(share)) - 1


def fastest_count(flows: int, share: float) -> int:
    """Return the number of flows whose mean is AR: |phi_HBF| = p |Phi|, rounded down, at least 1 if there are flows."""
    # The small addend prevents that 0.29 * 100 is rounded down to 28.
    return min(flows, max(1, math.floor(share * flows + 1e-9)))


def fastest_mean(rates: FlowRates, share: float) -> float | None:
    """Return AR, the mean rate of the fastest ``share`` of the flows, in bit/s; None without flows. O(n), without a
    sort."""
    if rates.size == 0:
        return None
    count = fastest_count(rates.size, share)
    fastest = np.partition(rates, rates.size - count)[rates.size - count :]
    return float(fastest.mean())
