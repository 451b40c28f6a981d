"""A copy of the switch's connection table, read while a controller is connected: `python -m topo.labs.connections.table
ADDRESS FILE`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sluice.dataplane.table import FINGERPRINT_SHIFT
from sluice.names import Register
from sluice.switch import pipeline
from sluice.switch.registers import P4RuntimeRegisters
from sluice.switch.session import Session

from topo.labs.connections.tuples import Tuples

_REGISTERS = (Register.PIN_KEY_1, Register.PIN_KEY_2, Register.PIN_SERVER_1, Register.PIN_SERVER_2)


@dataclass
class Table:
    """The keys and the servers' numbers of all slots, for both ways (hash functions) of the connection table."""

    keys: tuple[NDArray[np.uint64], NDArray[np.uint64]]
    servers: tuple[NDArray[np.uint64], NDArray[np.uint64]]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the table from its file."""
        with np.load(path) as file:
            keys_1, keys_2, servers_1, servers_2 = (file[name] for name in file.files)
        return cls((keys_1, keys_2), (servers_1, servers_2))

    def pins(self, tuples: Tuples) -> NDArray[np.int64]:
        """Return the number of the server in each connection's slot; 0: the connection has no slot."""
        slot_1, slot_2, fingerprint = tuples.places(self.keys[0].size)
        pins = np.zeros(slot_1.size, np.int64)
        for keys, servers, slots in reversed(list(zip(self.keys, self.servers, (slot_1, slot_2), strict=True))):
            is_pinned = keys[slots] >> np.uint64(FINGERPRINT_SHIFT) == fingerprint
            pins[is_pinned] = servers[slots[is_pinned]]
        return pins


async def _read(address: str) -> list[NDArray[np.uint64]]:
    # The election id is below every controller's, so this session can read but cannot become primary.
    async with Session(address, 1, pipeline.load(None), election_id=1) as session:
        return await P4RuntimeRegisters(session).arrays(_REGISTERS)


if __name__ == "__main__":
    np.savez(sys.argv[2], *asyncio.run(_read(sys.argv[1])))
