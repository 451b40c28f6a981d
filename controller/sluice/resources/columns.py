"""The interface of the switch's measurements of transfers: arrays with one element per slot of the connection table."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from .need import Reading

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NONE = -1
"""The value of `Columns.flow` for a slot that has no transfer."""


class Columns(Protocol):
    """Measurements of the transfers towards clients at the end of an interval. Sizes are in bytes."""

    @property
    def flow(self) -> Numbers:
        """The number of each slot's connection; NONE for a slot without a transfer."""
        ...

    @property
    def server(self) -> Numbers:
        """The number of each transfer's server."""
        ...

    @property
    def fingerprint(self) -> Numbers:
        """The fingerprint in each slot of the connection table. It distinguishes a connection from earlier ones in the
        same slot."""
        ...

    @property
    def sent(self) -> Numbers:
        """Bytes that each transfer has sent since it began."""
        ...

    def since(self, before: Self | None) -> Reading:
        """Return the changes since an earlier reading. If a transfer is new, or there is no earlier reading, the
        changes are the whole counts."""
        ...
