"""The P4Runtime session of a packet test: that of the tools, in the words of the pipeline."""

from __future__ import annotations

import queue
from collections.abc import Iterable
from typing import Protocol

from finsy import P4DigestList, P4PacketIn, P4PacketOut, P4Schema
from finsy.proto import p4r
from sluice.switch.answers import Sender, senders, subscription
from sluice.switch.pipeline import Pipeline

from topo.testbed import p4runtime as client
from topo.testbed.p4runtime import NotPrimary

__all__ = ["Client", "NotPrimary", "Readable"]


def _oldest(waiting: queue.Queue[p4r.StreamMessageResponse], timeout_s: float) -> p4r.StreamMessageResponse | None:
    try:
        return waiting.get(timeout=timeout_s) if timeout_s else waiting.get_nowait()
    except queue.Empty:
        return None


class Readable(Protocol):
    """What a read may ask for; all of finsy's entities are."""

    def encode(self, schema: P4Schema) -> p4r.Entity:
        """As the request says it."""
        ...


class Client(client.Client):
    """A session that knows the pipeline."""

    def __init__(self, address: str, device_id: int, pipeline: Pipeline, election_id: int) -> None:
        self.schema = pipeline.schema
        super().__init__(address, device_id, election_id)

    def packet_in(self, timeout_s: float) -> P4PacketIn | None:
        """The oldest packet from the switch, or None after ``timeout_s`` (0: only what is here already)."""
        message = _oldest(self._packets, timeout_s)
        return message and P4PacketIn.decode(message, self.schema)

    def senders(self, timeout_s: float) -> list[Sender]:
        """Who sent the oldest ARP that the switch has told of; nobody after ``timeout_s`` (0: only what is here)."""
        message = _oldest(self._digests, timeout_s)
        return list(senders([P4DigestList.decode(message, self.schema)])) if message else []

    def send(self, payload: bytes, egress_port: int) -> None:
        """Have the switch send a frame as it is."""
        packet = P4PacketOut(payload, egress_port=egress_port)
        self.packet_out(packet.encode_update(self.schema).packet)

    def push_pipeline(self) -> None:
        """Load the program: the switch forgets everything else. It is to tell the sender of every ARP."""
        config = self.schema.get_pipeline_config()
        self.push(config.p4info, config.p4_device_config, config.cookie.cookie)
        self.write([subscription().encode_update(self.schema)])

    def find(self, entities: Iterable[Readable]) -> list[p4r.Entity]:
        """Read, undecoded and in the switch's order."""
        return self.read(entity.encode(self.schema) for entity in entities)
