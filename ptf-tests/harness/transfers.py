"""Segments of a measured transfer, and the transfer's cells in the switch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sluice.dataplane.transfers import SENT_AT_BITS, TIME_BITS, flow_index
from sluice.dataplane.transfers import Flow as Measured
from sluice.names import TRANSFERS, Register, Table
from sluice.switch.transfers import Transfers, decode

from . import entries
from .base import StageTest
from .flow import ANSWER, FIRST, Flow
from .plan import S1, S2, WEB

CELLS = (
    Register.TRANSFER_OWNER,
    Register.TRANSFER_EDGE,
    Register.TRANSFER_ACKED,
    Register.TRANSFER_ACTIVITY,
    Register.TRANSFER_PROBE,
    Register.TRANSFER_LEAST,
    Register.TRANSFER_RTT,
    Register.TRANSFER_RECOVERY,
    Register.TRANSFER_LOSSES,
    Register.TRANSFER_SENT,
    Register.TRANSFER_FLIGHT,
    Register.TRANSFER_HOLE,
)
MSS = 1000
SECOND = 1_000_000
SILENCE = 400_000
"""A pause in microseconds, by which tests set back a transfer's times to simulate a silence.

It is longer than the time between any two segments of a test, so a retransmission after it counts as a timeout.
"""
_SPAN = (1 << SENT_AT_BITS) - 1


class TransferTest(StageTest):
    """Base class: all transfers of S1 and S2 are measured; offsets are in bytes from the server's first byte."""

    NEEDS = (Table.RESOURCES,)
    flow: Flow

    def setUp(self) -> None:
        super().setUp()
        self.insert(entries.managed(S1, measured=1), entries.managed(S2, measured=1))
        self.addCleanup(self.forget)

    def forget(self) -> None:
        """Clear all cells of transfers."""
        self.switch.registers.clear(*CELLS)

    def measured(self, flow: Flow, way: int = 0) -> Measured:
        """Return the flow's slot in the registers of transfers, and the fingerprint and server in the slot's cells."""
        key = flow.key
        return Measured(flow_index(way, (key.slot_1, key.slot_2)[way]), key.fingerprint, flow.server.id)

    # -- Segments

    def sends(self, flow: Flow, offset: int, size: int = MSS, flags: str = "A") -> None:
        """Send a segment of the server."""
        number = (ANSWER + 1 + offset) % (1 << 32)
        self.server_sends(flow, flow.reply(bytes(size), flags=flags, seq=number, ack=FIRST + 1))

    def sends_each(self, places: Iterable[int]) -> None:
        """Send full segments of `self.flow`; `places` are their offsets in segments."""
        for place in places:
            self.sends(self.flow, place * MSS)

    def delivers(self, offset: int) -> None:
        """Send a full segment of `self.flow`, and acknowledge it."""
        self.sends(self.flow, offset)
        self.acknowledges(self.flow, offset + MSS)

    def acknowledges(self, flow: Flow, offset: int, payload: bytes = b"", **fields: Any) -> None:
        """Let the client acknowledge all data up to the offset."""
        number = (ANSWER + 1 + offset) % (1 << 32)
        self.client_sends(flow, flow.request(payload, flags="A", seq=FIRST + 1, ack=number, **fields))

    # -- Cells

    def cells(self, flow: Flow, way: int = 0) -> list[int]:
        """Return the cells of the flow's slot, which may belong to another flow."""
        slot = self.measured(flow, way).slot
        return self.switch.registers.read([(register, slot) for register in CELLS])

    def put(self, flow: Flow, register: Register, value: int) -> None:
        """Write a cell of the flow's slot."""
        self.switch.registers.write(register, self.measured(flow).slot, value)

    def put_least(self, flow: Flow, microseconds: int) -> None:
        """Set the flow's smallest measured round-trip time in microseconds."""
        least = self.cells(flow)[CELLS.index(Register.TRANSFER_LEAST)]
        self.put(flow, Register.TRANSFER_LEAST, least >> 32 << 32 | microseconds)

    def passes(self, flow: Flow, microseconds: int) -> None:
        """Set the times in the flow's cells back by `microseconds`, as if that time had passed."""
        cells: dict[Register, int] = dict(zip(CELLS, self.cells(flow), strict=True))
        for register, value in older(cells, microseconds).items():
            self.put(flow, register, value)

    def columns(self, flow: Flow, way: int = 0) -> dict[str, Any]:
        """Return the values that the controller decodes from the cells of the flow's slot, by column."""
        slot = self.measured(flow, way).slot
        columns: dict[Register, Any] = {register: np.zeros(TRANSFERS, np.uint64) for register in CELLS}
        for register, value in zip(CELLS, self.cells(flow, way), strict=True):
            columns[register][slot] = value
        return row(decode(columns), slot)

    def assertMeasured(self, whose: Flow, /, **expected: float) -> None:
        """Assert the values of these columns in the flow's slot."""
        columns = self.columns(whose)
        self.assertEqual({name: columns[name] for name in expected}, expected)

    def assertUnowned(self, flow: Flow) -> None:
        """Assert that the switch measures no transfer in the flow's slot."""
        self.assertEqual(self.columns(flow)["flow"], -1)


class Established(TransferTest):
    """Base class: `self.flow` is a connection to S1 after its handshake."""

    def setUp(self) -> None:
        super().setUp()
        self.flow = Flow(WEB, S1)
        self.establishes(self.flow)


def row(transfers: Transfers, slot: int) -> dict[str, Any]:
    """Return the columns of a slot, by name."""
    return {name: getattr(transfers, name)[slot].item() for name in Transfers.__dataclass_fields__}


def older(cells: dict[Register, int], microseconds: int) -> dict[Register, int]:
    """Return those of the cells that contain a time, with the time set back by `microseconds`."""
    owner = cells[Register.TRANSFER_OWNER]
    stamp = (owner & 0xFFFF) - (microseconds >> 16) & 0xFFFF
    time_us = cells[Register.TRANSFER_ACTIVITY] % (1 << TIME_BITS)
    at_edge = cells[Register.TRANSFER_ACTIVITY] - time_us
    changed = {
        Register.TRANSFER_OWNER: owner >> 16 << 16 | stamp if owner else 0,
        Register.TRANSFER_ACTIVITY: at_edge | max(0, time_us - microseconds),
    }
    for register in (Register.TRANSFER_PROBE, Register.TRANSFER_HOLE):
        if at := (cell := cells[register]) & _SPAN:
            changed[register] = cell >> SENT_AT_BITS << SENT_AT_BITS | (at - microseconds & _SPAN | 1)
    return changed
