"""A synchronous P4Runtime session: what a test says to the switch, and what the switch says to its controller.

Independent of the controller under test elsewhere; only finsy's encoders and messages are shared with it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, cast

import grpc
from finsy import GRPCStatusCode, P4PacketIn, P4PacketOut, P4Schema
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

RPC_S = 20.0
"""Longest that one request may take; loading a program with large registers takes BMv2 about a second."""

MESSAGE_BYTES = 64 << 20
"""Largest answer: BMv2 sends one ReadResponse however large; gRPC's own limit is 4 MB."""


class Readable(Protocol):
    """What a read may ask for; all of finsy's entities are."""

    def encode(self, schema: P4Schema) -> p4r.Entity:
        """As the request says it."""
        ...


class ClientError(Exception):
    """The switch refused something; the text has its own words and the updates it failed."""


class NotPrimary(ClientError):
    """Another controller is the primary one."""


def _explained(error: grpc.RpcError, doing: str) -> ClientError:
    """The error of a failed call, with the per-update errors of P4Runtime (section 12.3) spelled out."""
    call = cast(Any, error)
    text = f"{doing}: {call.code().name}: {call.details()}"
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            text += f" [{_details(value)}]"
    kind = NotPrimary if call.code() is grpc.StatusCode.PERMISSION_DENIED else ClientError
    return kind(text)


def _details(value: bytes) -> str:
    from finsy.proto import rpc_status  # noqa: PLC0415 (only a failure needs it)

    status = rpc_status.Status.FromString(value)
    errors: list[str] = []
    for index, detail in enumerate(status.details):
        update = p4r.Error()
        if detail.Unpack(update) and update.canonical_code != rpc_code.OK:
            errors.append(f"update {index}: {GRPCStatusCode(update.canonical_code).name}: {update.message}")
    return "; ".join(errors[:3])


class Client:
    """One open stream with an election id. Raises ClientError wherever the switch refuses."""

    def __init__(self, address: str, device_id: int, schema: P4Schema, election_id: int) -> None:
        self.schema = schema
        self.device_id = device_id
        self.election_id = election_id
        self.is_primary = False
        options = [("grpc.max_receive_message_length", MESSAGE_BYTES)]
        self._channel = grpc.insecure_channel(address, options=options)
        self._stub: Any = cast(Any, p4r_grpc).P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._packets: queue.Queue[P4PacketIn] = queue.Queue()
        self._arbitrations: queue.Queue[p4r.MasterArbitrationUpdate | ClientError] = queue.Queue()
        self._errors: queue.Queue[p4r.StreamError] = queue.Queue()
        self._stream: Any = self._stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read_stream, name="p4runtime-stream", daemon=True)
        self._reader.start()
        self.bid(election_id)

    def close(self) -> None:
        """End the session; the switch keeps what it has."""
        self._requests.put(None)
        self._stream.cancel()
        self._reader.join()
        self._channel.close()

    # -- stream

    def _read_stream(self) -> None:
        try:
            for message in cast(Iterator[p4r.StreamMessageResponse], self._stream):
                match message.WhichOneof("update"):
                    case "packet":
                        self._packets.put(P4PacketIn.decode(message, self.schema))
                    case "arbitration":
                        self._arbitrations.put(message.arbitration)
                    case "error":
                        self._errors.put(message.error)
                    case _:
                        pass
        except grpc.RpcError as error:
            self._arbitrations.put(_explained(error, "stream"))

    def bid(self, election_id: int) -> None:
        """Ask to be the primary controller with this election id, and hear the answer."""
        self.election_id = election_id
        bid = p4r.MasterArbitrationUpdate(device_id=self.device_id, election_id=U128.encode(election_id))
        self._requests.put(p4r.StreamMessageRequest(arbitration=bid))
        self.await_arbitration()

    def await_arbitration(self) -> bool:
        """The next word of the switch on who is primary; True when it is this session."""
        try:
            answer = self._arbitrations.get(timeout=RPC_S)
        except queue.Empty:
            raise ClientError(f"no answer to arbitration within {RPC_S:g} s") from None
        if isinstance(answer, ClientError):
            raise answer
        self.is_primary = answer.status.code == rpc_code.OK
        return self.is_primary

    def take_over(self, election_id: int) -> None:
        """Become the primary controller after another one has gone; what the switch says of that one is passed over."""
        self.bid(election_id)
        while not self.is_primary:
            self.await_arbitration()

    def packet_in(self, timeout_s: float) -> P4PacketIn | None:
        """The oldest packet from the switch, or None after ``timeout_s`` (0: only what is here already)."""
        try:
            return self._packets.get(timeout=timeout_s) if timeout_s else self._packets.get_nowait()
        except queue.Empty:
            return None

    def stream_errors(self) -> list[str]:
        """What the switch said about messages on the stream since the last call."""
        errors: list[str] = []
        while not self._errors.empty():
            errors.append(self._errors.get().message)
        return errors

    def packet_out(self, payload: bytes, egress_port: int) -> None:
        """Have the switch send a frame as it is."""
        packet = P4PacketOut(payload, egress_port=egress_port)
        self._requests.put(packet.encode_update(self.schema))

    def packet_out_raw(self, message: p4r.PacketOut) -> None:
        """Give the switch a packet-out message as it is, well-formed or not."""
        self._requests.put(p4r.StreamMessageRequest(packet=message))

    # -- requests

    def push_pipeline(self) -> None:
        """Load the program: the switch forgets everything else. VERIFY_AND_COMMIT is what every target takes."""
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=U128.encode(self.election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self.schema.get_pipeline_config(),
        )
        self._call("SetForwardingPipelineConfig", request)

    def pipeline_cookie(self) -> int:
        """The cookie of the program that the switch runs."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id, response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        )
        return self._call("GetForwardingPipelineConfig", request).config.cookie.cookie

    def write(self, updates: Iterable[p4r.Update]) -> None:
        """Write all updates in one request."""
        request = p4r.WriteRequest(
            device_id=self.device_id, election_id=U128.encode(self.election_id), updates=list(updates)
        )
        if request.updates:
            self._call("Write", request)

    def read(self, entities: Iterable[Readable]) -> list[p4r.Entity]:
        """Read, undecoded and in the switch's order."""
        request = p4r.ReadRequest(
            device_id=self.device_id, entities=[entity.encode(self.schema) for entity in entities]
        )
        try:
            answers = self._stub.Read(request, timeout=RPC_S)
            return [entity for answer in answers for entity in answer.entities]
        except grpc.RpcError as error:
            raise _explained(error, "read") from None

    def _call(self, method: str, request: object) -> Any:
        try:
            return getattr(self._stub, method)(request, timeout=RPC_S)
        except grpc.RpcError as error:
            raise _explained(error, method) from None
