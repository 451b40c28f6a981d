"""AR, the transmission rate of the high-bandwidth response flows (section 4.1 of Chen & Heidemann)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .errors import ObservationError

FlowRates = NDArray[np.float64]
"""Response rate of each flow, bit/s."""


HALVINGS_MOST = 20
"""Of the part of the flows that is measured."""


def checked(rates: NDArray[np.generic]) -> FlowRates:
    """A flat array of doubles of finite rates that are not negative; raises ObservationError for any other."""
    flat = np.asarray(rates, dtype=np.float64).ravel()
    bad = np.flatnonzero(~(np.isfinite(flat) & (flat >= 0)))
    if bad.size:
        raise ObservationError(
            f"flow rate {flat[bad[0]]} at index {int(bad[0])} is no rate: leave out flows that were not measured"
        )
    return flat


def measured_share(share: float) -> float:
    """The part of the flows that the switch measures when asked for ``share``: the nearest 1/2^n."""
    return 2.0 ** -min(HALVINGS_MOST, round(-math.log2(share)))


def flow_mask(share: float) -> int:
    """The mask that leaves the part of the flows nearest to ``share``: those whose fingerprint has zeros under it."""
    return round(1 / measured_share(share)) - 1


def fastest_count(flows: int, share: float) -> int:
    """|phi_HBF| = p |Phi|, rounded down, at least one flow if there is any."""
    # The small addend keeps 0.29 * 100 from being 28.
    return min(flows, max(1, math.floor(share * flows + 1e-9)))


def fastest_mean(rates: FlowRates, share: float) -> float | None:
    """AR: the mean rate of the fastest ``share`` of the flows, bit/s; None without flows. O(n), no sort."""
    if rates.size == 0:
        return None
    count = fastest_count(rates.size, share)
    fastest = np.partition(rates, rates.size - count)[rates.size - count :]
    return float(fastest.mean())
