"""Stage caps: the caps that single connections have in place of their server's (docs/reference/resources.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sluice.names import Register
from sluice.resources.sharer import Caps

from .registers import Registers

_BYTES_BITS = 32


def cells(caps: Caps) -> NDArray[np.uint64]:
    """Cells of the stage. Raises ValueError for a cap that they cannot hold."""
    wrong = (caps.size < 0) | (caps.size >= 1 << _BYTES_BITS)
    if wrong.any():
        raise ValueError(f"a cap of {caps.size[wrong][0]} bytes: it must be from 0 to {(1 << _BYTES_BITS) - 1}")
    return (caps.fingerprint << _BYTES_BITS | caps.size).astype(np.uint64)


async def write(registers: Registers, register: Register, caps: Caps) -> None:
    """Give connections caps of their own, by their flow index: SEND_CAP towards clients, RECEIVE_CAP towards servers.

    Raises SwitchError, and ValueError before any write. The fingerprint is the connection table's, so that whoever
    takes the slot later is not meant; 0 bytes leave the server's default. Each begins with the next acknowledgement
    that advances.
    """
    await registers.write_cells(register, dict(zip(caps.flow.tolist(), cells(caps).tolist(), strict=True)))
