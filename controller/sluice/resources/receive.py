"""Receive buffers by their use (Azuma et al., section 2.1.2).

The receiver cannot measure the way, but a loss shows what the sender keeps in flight: all of that waits in the buffer
for what was lost. Near full the buffer is too small, hardly used after a loss it is too large. The papers name no
numbers; these are ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .need import LEAST_SEGMENTS
from .throughput import Column

FULL, SPARE = 0.9, 0.5
"""The buffer is near full from this use on, and hardly used below that one."""
STEP = 2.0


def receive_needs(sizes: Column, flight: Column, has_lost: NDArray[np.bool_], mss: Column) -> Column:
    """The needs in bytes after an interval with these sizes, in which at most ``flight`` bytes were in flight.

    Without a loss a use below ``SPARE`` says nothing: what arrives in order does not wait.
    """
    use = flight / np.maximum(1.0, sizes)
    needs = np.where(use >= FULL, sizes * STEP, np.where(has_lost & (use < SPARE), flight * STEP, sizes))
    return np.maximum(needs, LEAST_SEGMENTS * mss)
