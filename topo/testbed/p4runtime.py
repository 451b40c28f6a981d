"""A synchronous P4Runtime session that sends and receives raw messages. Packet tests add a layer that uses the
pipeline's names.

The module does not use the controller's code; both use the message classes of the library finsy.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Self, cast

import grpc
from finsy import GRPCStatusCode
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_code, rpc_status

RPC_S = 60.0
"""Seconds within which the switch must answer a request; a switch under load may be slow."""

MESSAGE_BYTES = 1 << 30
"""Largest size of a message in bytes. gRPC's default limit of 4 MB is too small, because BMv2 sends the whole answer to
a read in one ReadResponse."""


class Refused(Exception):
    """The switch refused a request. The text contains the switch's message. `codes` contains the status code of each
    update, or only the call's status code if the switch reports none for the updates."""

    def __init__(self, text: str, codes: tuple[int, ...] = ()) -> None:
        super().__init__(text)
        self.codes = codes


class NotPrimary(Refused):
    """Another controller is primary."""


def _refused(error: grpc.RpcError, doing: str) -> Refused:
    """Return the exception for a failed call; its text includes the errors of the first three refused updates
    (P4Runtime, section 12.3)."""
    call = cast(Any, error)
    text, codes = f"{doing}: {call.code().name}: {call.details()}", (call.code().value[0],)
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            updates = _updates(value)
            codes = tuple(update.canonical_code for update in updates) or codes
            messages = [
                f"update {index}: {GRPCStatusCode(update.canonical_code).name}: {update.message}"
                for index, update in enumerate(updates)
                if update.canonical_code != rpc_code.OK
            ]
            text += f" [{'; '.join(messages[:3])}]" if messages else ""
    kind = NotPrimary if call.code() is grpc.StatusCode.PERMISSION_DENIED else Refused
    return kind(text, codes)


def _updates(details: bytes) -> list[p4r.Error]:
    errors: list[p4r.Error] = []
    for detail in rpc_status.Status.FromString(details).details:
        update = p4r.Error()
        if detail.Unpack(update):
            errors.append(update)
    return errors


class Client:
    """A session: an open stream with an election id. Its methods raise Refused if the switch refuses a request."""

    def __init__(self, address: str, device_id: int = 0, election_id: int = 1) -> None:
        self.device_id = device_id
        self.election_id = election_id
        self.is_primary = False
        options = [
            ("grpc.max_receive_message_length", MESSAGE_BYTES),
            ("grpc.max_send_message_length", MESSAGE_BYTES),
            # By default gRPC sends the path of a Unix socket as authority, which HTTP/2 servers in Rust reject as
            # malformed
            ("grpc.default_authority", "localhost"),
        ]
        self._channel = grpc.insecure_channel(address, options=options)
        self._stub: Any = cast(Any, p4r_grpc).P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._packets: queue.Queue[p4r.StreamMessageResponse] = queue.Queue()
        self._digests: queue.Queue[p4r.StreamMessageResponse] = queue.Queue()
        self._errors: queue.Queue[p4r.StreamError] = queue.Queue()
        self._arbitrations: queue.Queue[p4r.MasterArbitrationUpdate | Refused] = queue.Queue()
        self._stream: Any = self._stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._listen, name="p4runtime-stream", daemon=True)
        self._reader.start()
        try:
            self.bid(election_id)
        except Refused:
            self.close()
            raise

    @classmethod
    def primary(cls, address: str) -> Self:
        """Return a session that is primary; raise NotPrimary if another controller is primary."""
        client = cls(address)
        if not client.is_primary:
            client.close()
            raise NotPrimary(f"another controller of {address} is primary")
        return client

    def close(self) -> None:
        """End the session; program and entries stay in the switch."""
        self._requests.put(None)
        self._stream.cancel()
        self._reader.join()
        self._channel.close()

    # -- stream

    def _listen(self) -> None:
        try:
            for message in cast(Iterator[p4r.StreamMessageResponse], self._stream):
                match message.WhichOneof("update"):
                    case "packet":
                        self._packets.put(message)
                    case "digest":
                        self._digests.put(message)
                    case "arbitration":
                        self._arbitrations.put(message.arbitration)
                    case "error":
                        self._errors.put(message.error)
                    case _:
                        pass
        except grpc.RpcError as error:
            self._arbitrations.put(_refused(error, "stream"))

    def bid(self, election_id: int) -> None:
        """Request to be primary with this election id, and wait for the switch's answer."""
        self.election_id = election_id
        bid = p4r.MasterArbitrationUpdate(device_id=self.device_id, election_id=U128.encode(election_id))
        self._requests.put(p4r.StreamMessageRequest(arbitration=bid))
        self.await_arbitration()

    def await_arbitration(self) -> bool:
        """Wait for the switch's next arbitration message; return whether this session is primary by its last bid. A
        message about an earlier bid of this session does not count: the switch accepts writes with the last election id
        only after it has received the last bid."""
        try:
            answer = self._arbitrations.get(timeout=RPC_S)
        except queue.Empty:
            raise Refused(f"no answer to arbitration within {RPC_S:g} s") from None
        if isinstance(answer, Refused):
            raise answer
        won = answer.status.code == rpc_code.OK
        self.is_primary = won and U128.decode(answer.election_id) == self.election_id
        return self.is_primary

    def take_over(self, election_id: int) -> None:
        """Bid with this election id, and wait until this session is primary after another controller has ended. The
        switch's messages about that controller are skipped."""
        self.bid(election_id)
        while not self.is_primary:
            self.await_arbitration()

    def packets(self) -> list[p4r.PacketIn]:
        """Return the packets that the switch has sent to the controller since the last call."""
        return [self._packets.get_nowait().packet for _ in range(self._packets.qsize())]

    def digests(self) -> list[p4r.DigestList]:
        """Return the digests that the switch has sent since the last call."""
        return [self._digests.get_nowait().digest for _ in range(self._digests.qsize())]

    def stream_errors(self) -> list[str]:
        """Return the errors that the switch has reported for messages on the stream since the last call."""
        return [self._errors.get_nowait().message for _ in range(self._errors.qsize())]

    def packet_out(self, packet: p4r.PacketOut) -> None:
        """Send the switch a packet to process."""
        self._requests.put(p4r.StreamMessageRequest(packet=packet))

    # -- requests

    def push(self, p4info: p4i.P4Info, program: bytes, cookie: int = 0) -> None:
        """Load a program by the action VERIFY_AND_COMMIT, which every target supports. The switch deletes all
        entries."""
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=U128.encode(self.election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=p4r.ForwardingPipelineConfig(
                p4info=p4info,
                p4_device_config=program,
                cookie=p4r.ForwardingPipelineConfig.Cookie(cookie=cookie),
            ),
        )
        self._call("SetForwardingPipelineConfig", request)

    def pipeline_cookie(self) -> int:
        """Return the cookie of the program that the switch runs."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id, response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        )
        return self._call("GetForwardingPipelineConfig", request).config.cookie.cookie

    def write(self, updates: Iterable[p4r.Update]) -> None:
        """Write updates in one request; a refused update does not prevent the others."""
        request = p4r.WriteRequest(device_id=self.device_id, election_id=U128.encode(self.election_id), updates=updates)
        if request.updates:
            self._call("Write", request)

    def read(self, entities: Iterable[p4r.Entity]) -> list[p4r.Entity]:
        """Return all entities that match the patterns, in the switch's order."""
        request = p4r.ReadRequest(device_id=self.device_id, entities=entities)
        try:
            return [entity for answer in self._stub.Read(request, timeout=RPC_S) for entity in answer.entities]
        except grpc.RpcError as error:
            raise _refused(error, "Read") from None

    def _call(self, method: str, request: object) -> Any:
        try:
            return getattr(self._stub, method)(request, timeout=RPC_S)
        except grpc.RpcError as error:
            raise _refused(error, method) from None
