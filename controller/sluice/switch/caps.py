"""Stage caps: caps on the TCP windows of single connections, which replace the default cap of the connection's server
(docs/reference/resources.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sluice.names import Register
from sluice.resources.sharer import Caps

from .registers import Registers

_BYTES_BITS = 32


def cells(caps: Caps) -> NDArray[np.uint64]:
    """Return the register cells that store the caps. Raises ValueError for a cap that its field cannot represent."""
    is_invalid = (caps.size < 0) | (caps.size >= 1 << _BYTES_BITS)
    if is_invalid.any():
        raise ValueError(f"a cap of {caps.size[is_invalid][0]} bytes: it must be from 0 to {(1 << _BYTES_BITS) - 1}")
    return (caps.fingerprint << _BYTES_BITS | caps.size).astype(np.uint64)


async def write(registers: Registers, register: Register, caps: Caps) -> None:
    """Write the caps of single connections to a register that is indexed by slot of the connection table.

    ``register``: SEND_CAP for data towards clients, RECEIVE_CAP for data towards servers.

    Raises SwitchError, and ValueError before any write. A cell contains the connection's fingerprint, so the cap does
    not apply to a later connection in the same slot. A cap of 0 bytes restores the server's default. A cap takes effect
    with the connection's next acknowledgement of new data.
    """
    await registers.write_cells(register, dict(zip(caps.flow.tolist(), cells(caps).tolist(), strict=True)))
