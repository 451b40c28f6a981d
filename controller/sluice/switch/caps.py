"""Stage caps: the caps that single connections have in place of their server's (docs/reference/resources.md)."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.names import Register
from sluice.resources.sharer import Cap

from .registers import Registers

_BYTES_BITS = 32


def cell(fingerprint: int, cap: int) -> int:
    """A cell of the stage. Raises ValueError for a cap that it cannot hold."""
    if not 0 <= cap < 1 << _BYTES_BITS:
        raise ValueError(f"a cap of {cap} bytes: it must be from 0 to {(1 << _BYTES_BITS) - 1}")
    return fingerprint << _BYTES_BITS | cap


async def write(registers: Registers, caps: Mapping[int, Cap]) -> None:
    """Give connections caps of their own, by their flow index. Raises SwitchError, and ValueError before any write.

    The fingerprint is the connection table's, so that whoever takes the slot later is not meant; 0 bytes leave the
    server's default. Each begins with the next acknowledgement that advances.
    """
    send = {flow: cell(own.fingerprint, own.send) for flow, own in caps.items()}
    receive = {flow: cell(own.fingerprint, own.receive) for flow, own in caps.items()}
    await registers.write_cells(Register.SEND_CAP, send)
    await registers.write_cells(Register.RECEIVE_CAP, receive)
