"""The interface of the switch's measurements of transfers: arrays with an element for each slot."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .need import Reading

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NONE = -1
"""The flow of a slot without a transfer."""


class Columns(Protocol):
    """Transfers towards clients, as they are after an interval; sizes are in bytes."""

    @property
    def flow(self) -> Numbers:
        """The number of each slot's connection; NONE without a transfer."""
        ...

    @property
    def server(self) -> Numbers:
        """The number of each transfer's server."""
        ...

    @property
    def fingerprint(self) -> Numbers:
        """The connection table's fingerprint, which distinguishes a connection from earlier ones in the same slot."""
        ...

    @property
    def sent(self) -> Numbers:
        """Bytes sent since the transfer began."""
        ...

    def since(self, before: Self | None) -> Reading:
        """Return the changes since an earlier reading. Without one, or for a new transfer, return all counts."""
        ...
