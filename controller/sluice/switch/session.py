"""A P4Runtime session with one switch: its stream, arbitration, reads, writes and packets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from typing import Any, TypeVar

import grpc.aio
from finsy import GRPCStatusCode, P4Client, P4ClientError
from finsy import p4entity as entity
from finsy.proto import U128, p4r

from sluice.log import logger

from .errors import NotPrimary, SwitchError, SwitchLost, translated
from .pipeline import Pipeline
from .targets import Profile

_log = logger("session")

_ANSWER_S = 10.0
"""Seconds within which the switch must answer the request for arbitration."""

_READ = "/p4.v1.P4Runtime/Read"
_WRITE = "/p4.v1.P4Runtime/Write"
_CONFIG = "/p4.v1.P4Runtime/GetForwardingPipelineConfig"
_PUSH = "/p4.v1.P4Runtime/SetForwardingPipelineConfig"
_PUSH_S = 90.0
"""Seconds within which the switch must load a program; a Tofino needs most of them."""

_LISTEN_S = 10.0
"""Seconds between the requests by which a backup controller checks that the switch still answers."""

BATCH = 500
"""The largest number of updates in one WriteRequest; it keeps a request well below gRPC's default limit of 4 MB."""

_WAITING = 256
"""The largest number of packets, and of digests, that wait until the controller reads them. Later packets and digests
are dropped."""


class Role(Enum):
    """The session's role, as decided by the switch's arbitration."""

    PRIMARY = auto()
    BACKUP = auto()


_NO_PROGRAM = (GRPCStatusCode.FAILED_PRECONDITION, GRPCStatusCode.NOT_FOUND, GRPCStatusCode.RESOURCE_EXHAUSTED)
"""Status codes with which a switch answers if it does not run this session's program.

simple_switch_grpc answers FAILED_PRECONDITION ("No forwarding pipeline config set for this device"). The session asks
for the complete program only if the switch returns no cookie. RESOURCE_EXHAUSTED then means that the program exceeds
gRPC's 4 MB: it is another program, or one that another controller loaded.
"""

_T = TypeVar("_T")


async def _all_of(queue: asyncio.Queue[_T]) -> list[_T]:
    """Wait for an item, then return all items in the queue."""
    items = [await queue.get()]
    while not queue.empty():
        items.append(queue.get_nowait())
    return items


def standby_election_id() -> int:
    """Return an election id that falls with time: a controller that starts later bids less than its predecessors, and
    becomes a backup."""
    return (1 << 62) - time.time_ns() // 1_000_000


class Session:
    """An open stream to a switch, as an asynchronous context manager. Its methods raise SwitchLost when the stream
    ends."""

    def __init__(self, address: str, device_id: int, pipeline: Pipeline, election_id: int | None = None) -> None:
        self.address = address
        self.device_id = device_id
        self.pipeline = pipeline
        self.target: Profile = pipeline.target
        """The target's profile; ``open_registers`` corrects it if the switch's register access shows another target."""
        self.dropped_messages = 0
        """Packets and digests that were dropped because the controller had not yet read earlier ones."""
        self.sent_packets = 0
        self._election_id = election_id if election_id is not None else standby_election_id()
        self._client = P4Client(address, wait_for_ready=False)
        self._writing = asyncio.Lock()
        """Serialises sends: gRPC's core refuses a message while another one is being written to the stream."""
        self._role: asyncio.Future[Role] | None = None
        self._role_changed = asyncio.Event()
        self._receiver: asyncio.Task[None] | None = None
        self._packets: asyncio.Queue[entity.P4PacketIn] = asyncio.Queue(_WAITING)
        self._digests: asyncio.Queue[entity.P4DigestList] = asyncio.Queue(_WAITING)
        self._current = Role.BACKUP

    async def __aenter__(self) -> Session:
        self._role = asyncio.get_running_loop().create_future()
        await self._client.open(schema=self.pipeline.schema, complete_request=self._complete)
        try:
            await self._bid(self._election_id)
            self._receiver = asyncio.create_task(self._receive(), name="stream")
            self._receiver.add_done_callback(self._stream_ended)
            async with asyncio.timeout(_ANSWER_S):
                self._current = await asyncio.shield(self._role)
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                text = f"switch {self.address}: no answer to arbitration within {_ANSWER_S:g} s"
                raise SwitchLost(text) from error
            if isinstance(error, P4ClientError):
                raise translated(error, self.address, "open the stream") from error
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session. The switch keeps running as programmed."""
        if self._receiver is not None:
            self._receiver.cancel()
            with suppress(asyncio.CancelledError, SwitchError):
                await self._receiver
        await self._client.close()

    # -- arbitration of the primary controller

    @property
    def is_primary(self) -> bool:
        """Whether the switch accepts writes from this session."""
        return self._current is Role.PRIMARY

    async def until_primary(self) -> None:
        """Wait until this session is primary. Raises SwitchLost if the stream ends or the switch stops answering.

        The session sends the switch regular requests, since TCP does not detect the loss of an idle connection.
        """
        primary = asyncio.create_task(self._until(Role.PRIMARY), name="until-primary")
        try:
            while not (await asyncio.wait({primary}, timeout=_LISTEN_S))[0]:
                await self._check_answers()
        finally:
            primary.cancel()
        await primary

    async def _check_answers(self) -> None:
        """Raise SwitchLost if the switch does not answer; a refusal counts as an answer."""
        try:
            await self._config(p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY)
        except P4ClientError as error:
            if isinstance(lost := translated(error, self.address, "stand by"), SwitchLost):
                raise lost from error

    async def until_ended(self) -> None:
        """Wait until the session ends. Raises SwitchLost when the stream ends, and NotPrimary when another controller
        becomes primary."""
        await self._until(Role.BACKUP)
        raise NotPrimary(f"switch {self.address}: another controller has taken over")

    async def _until(self, role: Role) -> None:
        assert self._receiver is not None
        while self._current is not role:
            changed = asyncio.create_task(self._role_changed.wait(), name="role-changed")
            try:
                await asyncio.wait({changed, self._receiver}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
            if self._receiver.done():
                await self._receiver
                raise SwitchLost(f"switch {self.address}: the stream ended")
            self._role_changed.clear()
        if self._receiver.done():
            await self._receiver

    async def _bid(self, election_id: int) -> None:
        self._election_id = election_id
        request = p4r.MasterArbitrationUpdate(device_id=self.device_id, election_id=U128.encode(election_id))
        await self._write_message(p4r.StreamMessageRequest(arbitration=request))

    async def _arbitration(self, message: p4r.MasterArbitrationUpdate) -> None:
        highest = U128.decode(message.election_id)
        role = Role.BACKUP
        match message.status.code:
            case GRPCStatusCode.OK:
                # OK decides, whatever the election id: simple_switch_grpc sends OK to a backup that it promotes on its
                # own, whose id is lower than that of the former primary.
                role = Role.PRIMARY
            case GRPCStatusCode.NOT_FOUND:
                # There is no primary any more. To become primary, bid at least the highest election id that the
                # switch has received.
                _log.info("no primary; bidding", extra={"highest": highest})
                await self._bid(max(self._election_id, highest + 1))
                return
            case GRPCStatusCode.ALREADY_EXISTS:
                pass
            case code:
                raise SwitchError(f"switch {self.address}: arbitration: {code} {message.status.message}")
        self._current = role
        self._role_changed.set()
        if self._role is not None and not self._role.done():
            self._role.set_result(role)

    def _complete(self, message: object) -> None:
        if isinstance(message, (p4r.WriteRequest, p4r.SetForwardingPipelineConfigRequest)):
            message.election_id.CopyFrom(U128.encode(self._election_id))

    # -- messages of the stream

    async def _receive(self) -> None:
        while True:
            try:
                message = await self._client.receive()
            except P4ClientError as error:
                # simple_switch_grpc ends the stream ("Election id already exists") if another session has bid the same
                # id. A later attempt may succeed, because an id that is not configured depends on the time.
                raise SwitchLost(f"switch {self.address}: the stream ended: {error.message}") from error
            except (RuntimeError, grpc.aio.UsageError) as error:
                raise SwitchLost(f"switch {self.address}: the stream ended") from error
            match message.WhichOneof("update"):
                case "arbitration":
                    await self._arbitration(message.arbitration)
                case "packet":
                    self._enqueue(self._packets, message)
                case "digest":
                    self._enqueue(self._digests, message)
                case "error":
                    _log.warning("stream error", extra={"text": message.error.message})
                case kind:
                    _log.debug("stream message not used", extra={"kind": kind})

    def _enqueue(self, queue: asyncio.Queue[Any], message: p4r.StreamMessageResponse) -> None:
        try:
            queue.put_nowait(entity.decode_stream(message, self.pipeline.schema))
        except asyncio.QueueFull:
            self.dropped_messages += 1
        except (ValueError, KeyError) as error:
            # The message belongs to a program that is about to be replaced.
            _log.debug("message not understood", extra={"error": str(error)})

    def _stream_ended(self, task: asyncio.Task[None]) -> None:
        if self._role is not None and not self._role.done():
            error = None if task.cancelled() else task.exception()
            self._role.set_exception(error or SwitchLost(f"switch {self.address}: the stream ended"))
            self._role.exception()

    async def next_packet(self) -> entity.P4PacketIn:
        """Wait for the next packet from the switch and return it."""
        return await self._packets.get()

    async def next_packets(self) -> list[entity.P4PacketIn]:
        """Wait for at least one packet from the switch; return all that have arrived, in order."""
        return await _all_of(self._packets)

    async def next_digests(self) -> list[entity.P4DigestList]:
        """Wait for at least one digest from the switch; return all that have arrived, in order."""
        return await _all_of(self._digests)

    async def send_packet(self, payload: bytes, egress_port: int) -> None:
        """Let the switch send a frame, unchanged, out of a port. Raises SwitchError."""
        packet = entity.P4PacketOut(payload, egress_port=egress_port)
        try:
            # If a writer is cancelled, gRPC ends the stream, and the session loses the primary role.
            await asyncio.shield(self._write_message(packet.encode_update(self.pipeline.schema)))
            self.sent_packets += 1
        except P4ClientError as error:
            raise translated(error, self.address, "send a packet") from error
        except grpc.aio.UsageError as error:
            raise SwitchLost(f"switch {self.address}: the stream ended") from error

    async def _write_message(self, message: p4r.StreamMessageRequest) -> None:
        async with self._writing:
            await self._client.send(message)

    # -- loading of the program

    async def runs_pipeline(self) -> bool:
        """Return whether the switch already runs this session's program. Raises SwitchError."""
        try:
            reply = await self._config(p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY)
            if not (reply.config.HasField("cookie") and reply.config.cookie.cookie):
                reply = await self._config(p4r.GetForwardingPipelineConfigRequest.ALL)
        except P4ClientError as error:
            if error.code in _NO_PROGRAM:
                return False
            raise translated(error, self.address, "read the pipeline") from error
        return self.pipeline.is_same(reply.config)

    async def runs_another_version(self) -> bool:
        """Return whether the switch's program has the same name, by its P4Info, as this session's program. Raises
        SwitchError."""
        try:
            reply = await self._config(p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE)
        except P4ClientError as error:
            if error.code in _NO_PROGRAM:
                return False
            raise translated(error, self.address, "read the pipeline") from error
        return bool(reply.config.p4info.pkg_info.name) and reply.config.p4info.pkg_info.name == self.pipeline.name

    async def push_pipeline(self, *, keep: bool = False) -> None:
        """Load the program. The switch loses its connections and all other state. Raises SwitchError.

        ``keep``: the switch either keeps all state or refuses the program without any change. BMv2 refuses every
        program with an indirect meter or counter.
        """
        actions = p4r.SetForwardingPipelineConfigRequest
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            action=actions.RECONCILE_AND_COMMIT if keep else actions.VERIFY_AND_COMMIT,
            config=self.pipeline.config(),
        )
        self._complete(request)
        call = self._channel.unary_unary(
            _PUSH, request_serializer=p4r.SetForwardingPipelineConfigRequest.SerializeToString
        )
        try:
            async with self._answered("load the program", _PUSH_S):
                await call(request)
        except grpc.RpcError as error:
            failed = P4ClientError(error, "SetForwardingPipelineConfigRequest")
            raise translated(failed, self.address, "load the program") from error

    # -- reads and writes of entities

    async def read(self, entities: Iterable[entity.P4Entity]) -> list[p4r.Entity]:
        """Read entities as protobuf messages. Raises SwitchError."""
        answers = await self.read_bytes(entities)
        return [entity for answer in answers for entity in p4r.ReadResponse.FromString(answer).entities]

    async def read_bytes(self, entities: Iterable[entity.P4Entity]) -> list[bytes]:
        """Read entities and return serialised ReadResponses, for callers with a faster decoder. Raises SwitchError."""
        request = p4r.ReadRequest(
            device_id=self.device_id, entities=[item.encode(self.pipeline.schema) for item in entities]
        )
        if not request.entities or self._client.channel is None:
            return []
        call = self._channel.unary_stream(_READ, request_serializer=p4r.ReadRequest.SerializeToString)
        try:
            async with self._answered("read"):
                return [answer async for answer in call(request)]
        except grpc.RpcError as error:
            failed = P4ClientError(error, "ReadRequest")
            if failed.code is GRPCStatusCode.UNIMPLEMENTED:
                raise NotImplementedError(failed.message) from error
            raise translated(failed, self.address, "read") from error

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        """Write the updates, at most BATCH per request. Raises SwitchError, which quotes the update that failed."""
        for start in range(0, len(updates), BATCH):
            request = p4r.WriteRequest(device_id=self.device_id, updates=updates[start : start + BATCH])
            self._complete(request)
            await self._write(request.SerializeToString())

    async def write_bytes(self, updates: bytes) -> None:
        """Write updates, which are encoded as fields of a WriteRequest, in one request. Raises SwitchError as ``write``
        does."""
        request = p4r.WriteRequest(device_id=self.device_id)
        self._complete(request)
        # Protobuf: the concatenation of two messages' encodings is the encoding of one message with the fields of
        # both.
        await self._write(request.SerializeToString() + updates)

    async def _write(self, content: bytes) -> None:
        call = self._channel.unary_unary(_WRITE)
        try:
            async with self._answered("write"):
                await call(content)
        except grpc.RpcError as error:
            request = p4r.WriteRequest.FromString(content)
            failed = P4ClientError(error, "WriteRequest", msg=request, schema=self.pipeline.schema)
            raise translated(failed, self.address, "write") from error

    async def _config(
        self, kind: p4r.GetForwardingPipelineConfigRequest.ResponseType.ValueType
    ) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the program that the switch reports. Raises P4ClientError, or SwitchLost if the switch does not
        answer."""
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=kind)
        call: Any = self._channel.unary_unary(
            _CONFIG,
            request_serializer=p4r.GetForwardingPipelineConfigRequest.SerializeToString,
            response_deserializer=p4r.GetForwardingPipelineConfigResponse.FromString,
        )
        try:
            async with self._answered("read the pipeline"):
                return await call(request)
        except grpc.RpcError as error:
            raise P4ClientError(error, "GetForwardingPipelineConfigRequest") from error

    @property
    def _channel(self) -> Any:
        """The open channel. Raises SwitchLost when the session is closed."""
        channel = self._client.channel
        if channel is None:
            raise SwitchLost(f"switch {self.address}: the session is closed")
        return channel

    @asynccontextmanager
    async def _answered(self, doing: str, within_s: float | None = None) -> AsyncGenerator[None]:
        """Raise SwitchLost if the body takes longer than ``within_s`` (default: the target's limit for an answer).

        The event loop's clock measures the time: a gRPC deadline would also expire while this process is stopped,
        and the error would wrongly blame the switch.
        """
        within_s = self.target.answer_s if within_s is None else within_s
        try:
            async with asyncio.timeout(within_s):
                yield
        except TimeoutError as error:
            raise SwitchLost(f"switch {self.address}: {doing}: no answer within {within_s:g} s") from error
