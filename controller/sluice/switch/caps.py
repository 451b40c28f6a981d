"""Stage caps: caps on the windows of single connections, in place of their server's default
(docs/reference/resources.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sluice.names import Register
from sluice.resources.sharer import Caps

from .registers import Registers

_BYTES_BITS = 32


def cells(caps: Caps) -> NDArray[np.uint64]:
    """Return the stage's register cells. Raises ValueError for a cap that does not fit into its bits."""
    is_invalid = (caps.size < 0) | (caps.size >= 1 << _BYTES_BITS)
    if is_invalid.any():
        raise ValueError(f"a cap of {caps.size[is_invalid][0]} bytes: it must be from 0 to {(1 << _BYTES_BITS) - 1}")
    return (caps.fingerprint << _BYTES_BITS | caps.size).astype(np.uint64)


async def write(registers: Registers, register: Register, caps: Caps) -> None:
    """Write caps of single connections by their flow index: SEND_CAP towards clients, RECEIVE_CAP towards servers.

    Raises SwitchError, and ValueError before any write. A cell holds the connection's fingerprint, so the cap does not
    apply to a later connection in the same slot. 0 bytes restore the server's default. A cap takes effect with the
    connection's next acknowledgement that advances.
    """
    await registers.write_cells(register, dict(zip(caps.flow.tolist(), cells(caps).tolist(), strict=True)))
