"""Stage caps: the caps that single connections have in place of their server's (docs/reference/resources.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sluice.names import Register

from .registers import Registers

_BYTES_BITS = 32


class OwnCaps(NamedTuple):
    """What one connection has of its own."""

    fingerprint: int
    """As the connection table has it: whoever takes the slot later is not meant."""
    send: int
    """Bytes that the client may advertise to the server; 0: the server's default."""
    receive: int
    """The same of what the server advertises to the client."""


def cell(fingerprint: int, cap: int) -> int:
    """A cell of the stage. Raises ValueError for a cap that it cannot hold."""
    if not 0 <= cap < 1 << _BYTES_BITS:
        raise ValueError(f"a cap of {cap} bytes: it must be from 0 to {(1 << _BYTES_BITS) - 1}")
    return fingerprint << _BYTES_BITS | cap


async def write(registers: Registers, caps: Mapping[int, OwnCaps]) -> None:
    """Give connections caps of their own, by their flow index. Raises SwitchError, and ValueError before any write.

    Each begins with the next acknowledgement that advances.
    """
    send = {flow: cell(own.fingerprint, own.send) for flow, own in caps.items()}
    receive = {flow: cell(own.fingerprint, own.receive) for flow, own in caps.items()}
    await registers.write_cells(Register.SEND_CAP, send)
    await registers.write_cells(Register.RECEIVE_CAP, receive)
