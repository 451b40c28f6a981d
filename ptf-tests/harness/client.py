"""The P4Runtime session of the packet tests, which uses the names in the program's P4Info."""

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
    """An entity that a read request may contain, such as each of finsy's entities."""

    def encode(self, schema: P4Schema) -> p4r.Entity:
        """Return the entity in the form in which a read request contains it."""
        ...


class Client(client.Client):
    """A session that encodes and decodes entities by the program's schema."""

    def __init__(self, address: str, device_id: int, pipeline: Pipeline, election_id: int) -> None:
        self.schema = pipeline.schema
        super().__init__(address, device_id, election_id)

    def packet_in(self, timeout_s: float) -> P4PacketIn | None:
        """Return the oldest packet-in; None if none arrives in `timeout_s` seconds (0: do not wait)."""
        message = _oldest(self._packets, timeout_s)
        return message and P4PacketIn.decode(message, self.schema)

    def senders(self, timeout_s: float) -> list[Sender]:
        """Return the ARP senders in the oldest digest; empty if none arrives in `timeout_s` seconds (0: no wait)."""
        message = _oldest(self._digests, timeout_s)
        return list(senders([P4DigestList.decode(message, self.schema)])) if message else []

    def send(self, payload: bytes, egress_port: int) -> None:
        """Let the switch send a frame unchanged by a port."""
        packet = P4PacketOut(payload, egress_port=egress_port)
        self.packet_out(packet.encode_update(self.schema).packet)

    def push_pipeline(self) -> None:
        """Install the program and so clear the state of the switch; subscribe to the digest of ARP senders."""
        config = self.schema.get_pipeline_config()
        self.push(config.p4info, config.p4_device_config, config.cookie.cookie)
        self.write([subscription().encode_update(self.schema)])

    def find(self, entities: Iterable[Readable]) -> list[p4r.Entity]:
        """Read entities; return them undecoded, in the order in which the switch sends them."""
        return self.read(entity.encode(self.schema) for entity in entities)
