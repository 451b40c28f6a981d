"""A P4Runtime server in the test's process: tables, registers, meters, counters, packets, digests, arbitration.

The server processes no packets. It stores written entities as protobuf messages and behaves as the specification
requires. A test therefore observes the requests of a controller, their order, and how the controller handles the
responses.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

import grpc.aio
import numpy as np
from finsy import P4Schema
from finsy.proto import U128, p4d, p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf import any_pb2
from numpy.typing import NDArray
from sluice.addresses import from_text
from sluice.dataplane.units import MICROSECONDS, Units
from sluice.names import CONNECTION_SLOTS, REGISTER_SIZES, Register
from sluice.switch.keys import Key, key_of

Stream = asyncio.Queue[p4r.StreamMessageResponse]

MAX_MESSAGE_BYTES = 256 << 20
"""Largest gRPC message in bytes; gRPC's default of 4 MB is smaller than a program for Tofino."""


@dataclass(eq=False)
class Client:
    """The open stream channel of a P4Runtime client."""

    outbox: Stream = field(default_factory=asyncio.Queue)
    election_id: int = 0


class FakeSwitch(p4r_grpc.P4RuntimeServicer):
    """A fake switch on a loopback port; `start`, `stop` and `restart` act like the start and end of a process."""

    def __init__(self, *, device_id: int = 1, registers_over_p4runtime: bool = True) -> None:
        self.device_id = device_id
        self.registers_over_p4runtime = registers_over_p4runtime
        self.port = 0
        self.writes: list[p4r.WriteRequest] = []
        """All write requests that the switch has executed."""
        self.asked: list[p4r.Entity] = []
        """All entities that clients have requested to read."""
        self.pushes = 0
        self.packets_out: asyncio.Queue[p4r.PacketOut] = asyncio.Queue()
        self.refuse_table: str | None = None
        """Alias of a table whose updates fail; None: no update fails."""
        self._server: grpc.aio.Server | None = None
        self._clients: list[Client] = []
        self._highest = 0
        self.keeps_nothing = ""
        """Error message with which the switch refuses to load a program and keep its own state (RECONCILE_AND_COMMIT).

        Empty: it does not refuse.
        """
        self._forget()

    def _forget(self) -> None:
        self.config: p4r.ForwardingPipelineConfig | None = None
        self.schema = P4Schema()
        self.tables: dict[Key, p4r.TableEntry] = {}
        self.registers: dict[tuple[int, int], int] = {}
        self.meters: dict[tuple[int, int], p4r.MeterConfig] = {}
        self.counters: dict[tuple[int, int], int] = {}
        self.digests: dict[int, p4r.DigestEntry] = {}
        self.clone_sessions: dict[int, p4r.CloneSessionEntry] = {}

    @property
    def address(self) -> str:
        """The address of the P4Runtime server, as host:port."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Begin to listen; after `stop`, on the port that was used before."""
        self._server = grpc.aio.server(options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)])
        p4r_grpc.add_P4RuntimeServicer_to_server(self, self._server)
        bound = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        assert bound, f"port {self.port} cannot be had"
        self.port = bound
        await self._server.start()

    async def stop(self) -> None:
        """End all streams and stop listening."""
        assert self._server is not None
        await self._server.stop(None)
        self._clients.clear()
        self._highest = 0

    async def restart(self) -> None:
        """Act like a process that is killed and started again: all state is lost."""
        await self.stop()
        self._forget()
        await self.start()

    # -- Methods with which tests read and change the switch's state

    def entries(self, alias: str) -> list[p4r.TableEntry]:
        """Return all entries of a table, except its default entry."""
        number = self.schema.tables[alias].id
        return [entry for key, entry in self.tables.items() if key[0] == number and not key[1]]

    def weights(self, service_id: int, alias: str = "choose") -> dict[int, int]:
        """Return the weights in the selector group of a service in table `alias`, by server number; {} if none."""
        for entry in self.entries(alias):
            if int.from_bytes(entry.match[0].exact.value, "big") == service_id:
                members = entry.action.action_profile_action_set.action_profile_actions
                return {int.from_bytes(m.action.params[0].value, "big"): m.weight for m in members}
        return {}

    def count(self, register: str, index: int, more: int) -> None:
        """Add `more` to a cell of a cumulative 32-bit register, which wraps."""
        cell = (self.schema.registers[register].id, index)
        self.registers[cell] = (self.registers.get(cell, 0) + more) % (1 << 32)

    def hold(self, register: str, index: int, value: int) -> None:
        """Set a cell of a register to a value."""
        self.registers[self.schema.registers[register].id, index] = value

    def packet_in(self, payload: bytes, **metadata: int) -> None:
        """Send a packet-in to the primary controller."""
        header = self.schema.controller_packet_metadata["packet_in"]
        packet = p4r.PacketIn(payload=payload, metadata=header.encode(dict[str, Any](metadata)))
        primary = self._primary()
        assert primary is not None
        primary.outbox.put_nowait(p4r.StreamMessageResponse(packet=packet))

    def arp(self, port: int, address: str, mac: str, answered_by: str | None = None) -> None:
        """Report the sender of an ARP message to the primary controller, if that controller subscribed to the digest.

        `answered_by` is the switch's address for which it answers the ARP request; None: the switch does not answer.
        """
        digest = self.schema.digests["arp_sender_t"]
        if digest.id not in self.digests:
            return
        answers = from_text(answered_by or address)
        said = (port, int(from_text(address)), int(mac.replace(":", ""), 16), int(answers))
        members = [p4d.P4Data(bitstring=shortest(value)) for value in said]
        data = p4d.P4Data(struct=p4d.P4StructLike(members=members))
        primary = self._primary()
        assert primary is not None
        message = p4r.DigestList(digest_id=digest.id, list_id=1, data=[data])
        primary.outbox.put_nowait(p4r.StreamMessageResponse(digest=message))

    # -- Arbitration

    def _primary(self) -> Client | None:
        candidates = [c for c in self._clients if c.election_id == self._highest]
        return candidates[0] if candidates else None

    def _notify(self, clients: list[Client]) -> None:
        primary = self._primary()
        for client in clients:
            code = (
                rpc_code.OK
                if client is primary
                else rpc_code.ALREADY_EXISTS
                if primary is not None
                else rpc_code.NOT_FOUND
            )
            update = p4r.MasterArbitrationUpdate(
                device_id=self.device_id,
                election_id=U128.encode(self._highest),
                status=rpc_status.Status(code=code),
            )
            client.outbox.put_nowait(p4r.StreamMessageResponse(arbitration=update))

    async def StreamChannel(
        self, request_iterator: AsyncIterator[p4r.StreamMessageRequest], context: Any
    ) -> AsyncIterator[p4r.StreamMessageResponse]:
        client = Client()
        reading = asyncio.create_task(self._read_stream(client, request_iterator, context))
        getting: asyncio.Task[p4r.StreamMessageResponse] | None = None
        try:
            while not reading.done():
                getting = asyncio.create_task(client.outbox.get())
                await asyncio.wait({getting, reading}, return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    break
                yield getting.result()
            if (error := reading.exception()) is not None:
                raise error
        finally:
            reading.cancel()
            if getting is not None:
                getting.cancel()
            if client in self._clients:
                was_primary = client is self._primary()
                self._clients.remove(client)
                if was_primary:
                    self._notify(self._clients)

    async def _read_stream(
        self, client: Client, requests: AsyncIterator[p4r.StreamMessageRequest], context: Any
    ) -> None:
        async for request in requests:
            match request.WhichOneof("update"):
                case "arbitration":
                    bid = U128.decode(request.arbitration.election_id)
                    if any(c.election_id == bid and c is not client for c in self._clients):
                        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "Election id already exists")
                    before = self._primary()
                    client.election_id = bid
                    if client not in self._clients:
                        self._clients.append(client)
                    self._highest = max(self._highest, bid)
                    changed = self._primary() is not before
                    self._notify(self._clients if changed else [client])
                case "packet":
                    if client is self._primary():
                        self.packets_out.put_nowait(request.packet)
                case _:
                    pass

    # -- Unary calls

    async def Capabilities(self, request: Any, context: Any) -> p4r.CapabilitiesResponse:
        return p4r.CapabilitiesResponse(p4runtime_api_version="1.5.0")

    async def _check_primary(self, request: Any, context: Any) -> None:
        primary = self._primary()
        if primary is None or U128.decode(request.election_id) != primary.election_id:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "Not primary")

    async def _check_pipeline(self, context: Any) -> None:
        if self.config is None:
            text = "No forwarding pipeline config set for this device"
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, text)

    async def SetForwardingPipelineConfig(
        self, request: p4r.SetForwardingPipelineConfigRequest, context: Any
    ) -> p4r.SetForwardingPipelineConfigResponse:
        await self._check_primary(request, context)
        if request.action == p4r.SetForwardingPipelineConfigRequest.RECONCILE_AND_COMMIT:
            if self.keeps_nothing:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.keeps_nothing)
        else:
            assert request.action == p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
            self._forget()
        self.config = request.config
        self.schema = P4Schema(request.config.p4info)
        self.pushes += 1
        return p4r.SetForwardingPipelineConfigResponse()

    async def GetForwardingPipelineConfig(
        self, request: p4r.GetForwardingPipelineConfigRequest, context: Any
    ) -> p4r.GetForwardingPipelineConfigResponse:
        await self._check_pipeline(context)
        assert self.config is not None
        config = p4r.ForwardingPipelineConfig()
        config.CopyFrom(self.config)
        kinds = p4r.GetForwardingPipelineConfigRequest
        if request.response_type == kinds.COOKIE_ONLY:
            config.ClearField("p4info")
        if request.response_type in (kinds.COOKIE_ONLY, kinds.P4INFO_AND_COOKIE):
            config.ClearField("p4_device_config")
        return p4r.GetForwardingPipelineConfigResponse(config=config)

    async def Write(self, request: p4r.WriteRequest, context: Any) -> p4r.WriteResponse:
        await self._check_pipeline(context)
        await self._check_primary(request, context)
        errors = [self._update(update) for update in request.updates]
        if any(error.canonical_code for error in errors):
            status = rpc_status.Status(code=rpc_code.UNKNOWN, message="Write failed")
            for error in errors:
                detail = any_pb2.Any()
                detail.Pack(error)
                status.details.append(detail)
            metadata = (("grpc-status-details-bin", status.SerializeToString()),)
            await context.abort(grpc.StatusCode.UNKNOWN, "Write failed", metadata)
        self.writes.append(request)
        return p4r.WriteResponse()

    def _update(self, update: p4r.Update) -> p4r.Error:
        entity = update.entity
        match entity.WhichOneof("entity"):
            case "table_entry":
                return self._update_table(update.type, entity.table_entry)
            case "meter_entry":
                cell = (entity.meter_entry.meter_id, entity.meter_entry.index.index)
                self.meters.pop(cell, None)
                if entity.meter_entry.HasField("config"):
                    self.meters[cell] = entity.meter_entry.config
            case "register_entry":
                entry = entity.register_entry
                cell = (entry.register_id, entry.index.index)
                self.registers[cell] = int.from_bytes(entry.data.bitstring, "big")
            case "packet_replication_engine_entry":
                return self._update_clones(update.type, entity.packet_replication_engine_entry)
            case "digest_entry":
                return self._update_digest(update.type, entity.digest_entry)
            case other:
                return p4r.Error(canonical_code=rpc_code.UNIMPLEMENTED, message=f"no {other}")
        return p4r.Error()

    def _update_clones(self, kind: int, entry: p4r.PacketReplicationEngineEntry) -> p4r.Error:
        number = entry.clone_session_entry.session_id
        if number in self.clone_sessions:
            return p4r.Error(canonical_code=rpc_code.ALREADY_EXISTS, message="clone session exists")
        assert kind == p4r.Update.INSERT, "the controller changes or ends no clone session"
        self.clone_sessions[number] = entry.clone_session_entry
        return p4r.Error()

    def _update_digest(self, kind: int, entry: p4r.DigestEntry) -> p4r.Error:
        if kind == p4r.Update.INSERT and entry.digest_id in self.digests:
            return p4r.Error(canonical_code=rpc_code.ALREADY_EXISTS, message="digest is configured")
        assert kind == p4r.Update.INSERT, "the controller changes or ends no digest"
        self.digests[entry.digest_id] = entry
        return p4r.Error()

    def _update_table(self, kind: int, entry: p4r.TableEntry) -> p4r.Error:
        table = self.schema.tables[entry.table_id]
        if table.alias == self.refuse_table:
            return p4r.Error(canonical_code=rpc_code.RESOURCE_EXHAUSTED, message=f"table {table.alias} is full")
        key = key_of(entry)
        if kind == p4r.Update.INSERT and key in self.tables:
            return p4r.Error(canonical_code=rpc_code.ALREADY_EXISTS, message="entry exists")
        if kind != p4r.Update.INSERT and key not in self.tables and not entry.is_default_action:
            return p4r.Error(canonical_code=rpc_code.NOT_FOUND, message="no such entry")
        if kind == p4r.Update.DELETE:
            del self.tables[key]
        else:
            self.tables[key] = entry
        return p4r.Error()

    async def Read(self, request: p4r.ReadRequest, context: Any) -> AsyncIterator[p4r.ReadResponse]:
        await self._check_pipeline(context)
        if not self.registers_over_p4runtime and any(
            e.WhichOneof("entity") == "register_entry" for e in request.entities
        ):
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Register reads are not supported yet")
        self.asked += request.entities
        # All responses reflect the same moment, as in the embedded switch.
        for response in [self._response(wanted) for wanted in request.entities]:
            yield response

    def _response(self, wanted: p4r.Entity) -> p4r.ReadResponse:
        """Return the response for one requested entity.

        The response for a complete register is a copy of a response with zeros, in which written cells are replaced.
        """
        entry = wanted.register_entry
        if wanted.WhichOneof("entity") != "register_entry" or entry.HasField("index"):
            return p4r.ReadResponse(entities=self._read(wanted))
        size = self.schema.registers[entry.register_id].size
        cells = {index: value for (number, index), value in self.registers.items() if number == entry.register_id}
        zeros = _zeros(entry.register_id, size)
        if not any(cells.values()):
            return zeros
        response = p4r.ReadResponse()
        response.CopyFrom(zeros)
        for index, value in cells.items():
            response.entities[index].CopyFrom(_register(entry.register_id, index, value))
        return response

    def _read(self, wanted: p4r.Entity) -> list[p4r.Entity]:
        match wanted.WhichOneof("entity"):
            case "table_entry":
                entry = wanted.table_entry
                return [
                    p4r.Entity(table_entry=stored)
                    for key, stored in self.tables.items()
                    if entry.table_id in (0, key[0]) and key[1] == entry.is_default_action
                ]
            case "register_entry":
                entry = wanted.register_entry
                cells = _indices(entry, self.schema.registers[entry.register_id].size)
                return [_register(entry.register_id, i, self.registers.get((entry.register_id, i), 0)) for i in cells]
            case "meter_entry":
                entry = wanted.meter_entry
                cells = _indices(entry, self.schema.meters[entry.meter_id].size)
                return [_meter(entry.meter_id, i, self.meters.get((entry.meter_id, i))) for i in cells]
            case "counter_entry":
                entry = wanted.counter_entry
                cells = _indices(entry, self.schema.counters[entry.counter_id].size)
                return [_counter(entry.counter_id, i, self.counters.get((entry.counter_id, i), 0)) for i in cells]
            case other:
                raise AssertionError(f"the controller reads {other}")


def _meter(number: int, index: int, config: p4r.MeterConfig | None) -> p4r.Entity:
    return p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=number, index=p4r.Index(index=index), config=config))


def _counter(number: int, index: int, packets: int) -> p4r.Entity:
    data = p4r.CounterData(packet_count=packets)
    return p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=number, index=p4r.Index(index=index), data=data))


def _register(number: int, index: int, value: int) -> p4r.Entity:
    data = p4d.P4Data(bitstring=shortest(value))
    return p4r.Entity(register_entry=p4r.RegisterEntry(register_id=number, index=p4r.Index(index=index), data=data))


@lru_cache
def _zeros(number: int, size: int) -> p4r.ReadResponse:
    """Return a response with a register of zeros, made by copying one message for each index.

    Building a message for each cell of the connection table would block this process for seconds.
    """
    response, cell = p4r.ReadResponse(), _register(number, 0, 0)
    for index in range(size):
        cell.register_entry.index.index = index
        response.entities.append(cell)
    return response


def shortest(value: int) -> bytes:
    """Return a number as the shortest byte string, which P4Runtime requires."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def _indices(entry: Any, size: int) -> range:
    return range(entry.index.index, entry.index.index + 1) if entry.HasField("index") else range(size)


class Memory:
    """Registers in memory; tests use these for tables that are too large for protobuf messages."""

    def __init__(self, units: Units = MICROSECONDS) -> None:
        self.units = units
        self.cells: dict[str, dict[int, int]] = defaultdict(dict)

    def has(self, register: str) -> bool:
        return register in set(Register)

    async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
        sizes = {str(name): size for name, size in REGISTER_SIZES.items()}
        wanted = range(sizes.get(register, CONNECTION_SLOTS)) if indices is None else indices
        return [self.cells[register].get(index, 0) for index in wanted]

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        return [await self.read(register, indices) for register in registers]

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        return [np.array(await self.read(register), np.uint64) for register in registers]

    async def write(self, register: str, index: int, value: int) -> None:
        self.cells[register][index] = value

    async def write_cells(self, register: str, cells: Mapping[int, int]) -> None:
        self.cells[register].update(cells)

    def count(self, register: Register, index: int, more: int) -> None:
        """Add `more` to a cumulative 32-bit cell, which wraps."""
        self.cells[register][index] = (self.cells[register].get(index, 0) + more) % (1 << 32)

    async def close(self) -> None:
        return
