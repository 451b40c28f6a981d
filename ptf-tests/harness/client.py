"""The P4Runtime session of a packet test: that of the tools, in the words of the pipeline."""

from __future__ import annotations

import queue
from collections.abc import Iterable
from typing import Protocol

from finsy import P4PacketIn, P4PacketOut, P4Schema
from finsy.proto import p4r

from tools.target import client
from tools.target.client import NotPrimary

__all__ = ["Client", "NotPrimary", "Readable"]


class Readable(Protocol):
    """What a read may ask for; all of finsy's entities are."""

    def encode(self, schema: P4Schema) -> p4r.Entity:
        """As the request says it."""
        ...


class Client(client.Client):
    """A session that knows the pipeline."""

    def __init__(self, address: str, device_id: int, schema: P4Schema, election_id: int) -> None:
        self.schema = schema
        super().__init__(address, device_id, election_id)

    def packet_in(self, timeout_s: float) -> P4PacketIn | None:
        """The oldest packet from the switch, or None after ``timeout_s`` (0: only what is here already)."""
        try:
            message = self._packets.get(timeout=timeout_s) if timeout_s else self._packets.get_nowait()
        except queue.Empty:
            return None
        return P4PacketIn.decode(message, self.schema)

    def send(self, payload: bytes, egress_port: int) -> None:
        """Have the switch send a frame as it is."""
        packet = P4PacketOut(payload, egress_port=egress_port)
        self.packet_out(packet.encode_update(self.schema).packet)

    def push_pipeline(self) -> None:
        """Load the program: the switch forgets everything else."""
        config = self.schema.get_pipeline_config()
        self.push(config.p4info, config.p4_device_config, config.cookie.cookie)

    def find(self, entities: Iterable[Readable]) -> list[p4r.Entity]:
        """Read, undecoded and in the switch's order."""
        return self.read(entity.encode(self.schema) for entity in entities)
