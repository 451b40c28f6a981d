"""A measured transfer's segments, and its cells as the switch has them."""

from __future__ import annotations

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
"""Longer than any test takes between two segments but a time-out's; as SECOND in microseconds."""
_SPAN = (1 << SENT_AT_BITS) - 1


class TransferTest(StageTest):
    """Base: the transfers of S1 and S2 are measured, all of them. Offsets count from the server's first byte."""

    NEEDS = (Table.RESOURCES,)

    def setUp(self) -> None:
        super().setUp()
        self.insert(entries.managed(S1, measured=1), entries.managed(S2, measured=1))
        self.addCleanup(self.forget)

    def forget(self) -> None:
        """As if nothing was ever measured."""
        for register in CELLS:
            self.switch.registers.clear(register)

    def measured(self, flow: Flow, way: int = 0) -> Measured:
        """The flow as the cells know it."""
        key = flow.key
        return Measured(flow_index(way, (key.slot_1, key.slot_2)[way]), key.fingerprint, flow.server.id)

    # -- segments

    def sends(self, flow: Flow, offset: int, size: int = MSS, flags: str = "A") -> None:
        """The server sends a segment."""
        number = (ANSWER + 1 + offset) % (1 << 32)
        self.server_sends(flow, flow.reply(bytes(size), flags=flags, seq=number, ack=FIRST + 1))

    def acknowledges(self, flow: Flow, offset: int, payload: bytes = b"", **fields: Any) -> None:
        """The client acknowledges all up to there."""
        number = (ANSWER + 1 + offset) % (1 << 32)
        self.client_sends(flow, flow.request(payload, flags="A", seq=FIRST + 1, ack=number, **fields))

    # -- cells

    def cells(self, flow: Flow, way: int = 0) -> list[int]:
        """Of the slot that the flow has or would have."""
        slot = self.measured(flow, way).slot
        return self.switch.registers.read([(register, slot) for register in CELLS])

    def put(self, flow: Flow, register: Register, value: int) -> None:
        """Write a cell of the flow's slot."""
        self.switch.registers.write(register, self.measured(flow).slot, value)

    def put_least(self, flow: Flow, microseconds: int) -> None:
        """The least round trip of the flow is so long."""
        least = self.cells(flow)[CELLS.index(Register.TRANSFER_LEAST)]
        self.put(flow, Register.TRANSFER_LEAST, least >> 32 << 32 | microseconds)

    def passes(self, flow: Flow, microseconds: int) -> None:
        """Time passes: what the cells remember is older by then. Nothing waits."""
        cells: dict[Register, int] = dict(zip(CELLS, self.cells(flow), strict=True))
        for register, value in older(cells, microseconds).items():
            self.put(flow, register, value)

    def seen(self, flow: Flow, way: int = 0) -> dict[str, Any]:
        """What a controller reads of the flow's slot."""
        slot = self.measured(flow, way).slot
        columns: dict[Register, Any] = {register: np.zeros(TRANSFERS, np.uint64) for register in CELLS}
        for register, value in zip(CELLS, self.cells(flow, way), strict=True):
            columns[register][slot] = value
        return row(decode(columns), slot)

    def assertSeen(self, whose: Flow, /, **expected: float) -> None:
        """These columns of the flow's slot are so."""
        seen = self.seen(whose)
        self.assertEqual({name: seen[name] for name in expected}, expected)

    def assertNobodys(self, flow: Flow) -> None:
        """Nobody's transfer is measured in the flow's slot."""
        self.assertEqual(self.seen(flow)["flow"], -1)


class Established(TransferTest):
    """Base: one connection to S1, whose handshake is over."""

    def setUp(self) -> None:
        super().setUp()
        self.flow = Flow(WEB, S1)
        self.establishes(self.flow)


def row(transfers: Transfers, slot: int) -> dict[str, Any]:
    """A slot's columns."""
    return {name: getattr(transfers, name)[slot].item() for name in Transfers.__dataclass_fields__}


def older(cells: dict[Register, int], microseconds: int) -> dict[Register, int]:
    """The same by so much later: those cells that have a time in them."""
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
