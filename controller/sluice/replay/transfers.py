"""Computes the transfer measurements that the switch would have made, from a capture's segments
(`sluice.dataplane.transfers`)."""

from __future__ import annotations

from sluice.dataplane import transfers
from sluice.dataplane.connection import Connection
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import Pin
from sluice.dataplane.table import ConnectionTable
from sluice.switch.plan import Plan

from .capture import Segment


class MeasuredTransfers:
    """Measures the transfers of servers whose send buffers are shared."""

    def __init__(self, memory: Memory, table: ConnectionTable, plan: Plan) -> None:
        self._cells, self._table = transfers.TransferCells(memory), table
        self._sampling = {
            server.id: resources.sampling
            for service in plan.services
            if (resources := service.config.resources) and resources.send
            for server in service.servers
        }

    def packet(self, now_us: int, connection: Connection, pin: Pin, segment: Segment, *, by_server: bool) -> None:
        """Measure a segment between a client and its server, if the connection is sampled and has a slot. ``pin``: the
        connection's entry, with its states before and after the segment."""
        sampling = self._sampling.get(pin.server)
        place = connection.place
        if sampling is None or not transfers.is_sampled(place.fingerprint, sampling):
            return
        if (number := self._table.number(place)) is None:
            return
        self._cells.packet(
            now_us,
            transfers.Flow(number, place.fingerprint, pin.server),
            transfers.Segment(
                by_server,
                segment.sequence,
                segment.acknowledgement,
                segment.payload,
                segment.flags,
                pin.before,
                pin.after,
                window=segment.window,
                data_offset=segment.data_offset,
            ),
        )
