"""What the switch tells of the transfers that it measures, an element a slot."""

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
        """The connection's number; NONE without one."""
        ...

    @property
    def server(self) -> Numbers:
        """Its server's number."""
        ...

    @property
    def fingerprint(self) -> Numbers:
        """Of the connection table: tells this connection from others that had its number."""
        ...

    @property
    def sent(self) -> Numbers:
        """So far."""
        ...

    def since(self, before: Self | None) -> Reading:
        """What came after an earlier reading; without one, and for transfers that were not there then, all of it."""
        ...
