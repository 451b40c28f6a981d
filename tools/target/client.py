"""A synchronous P4Runtime session for tools: raw messages, one primary controller."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, cast

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_status

RPC_S = 60.0
"""Longest that a request may take: a switch may be slow under load, but not dead."""

MESSAGE_BYTES = 1 << 30
"""Largest answer: BMv2 sends one ReadResponse however large."""

ELECTION_ID = U128.encode(1)


class Refused(Exception):
    """The switch refused a request; the text has its own words, `codes` the code of each update or of the call."""

    def __init__(self, text: str, codes: tuple[int, ...]) -> None:
        super().__init__(text)
        self.codes = codes


def _refused(error: grpc.RpcError, doing: str) -> Refused:
    call = cast(Any, error)
    text, codes = f"{doing}: {call.code().name}: {call.details()}", (call.code().value[0],)
    for key, value in call.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            errors: list[p4r.Error] = []
            for detail in rpc_status.Status.FromString(value).details:
                update = p4r.Error()
                if detail.Unpack(update):
                    errors.append(update)
            codes = tuple(update.canonical_code for update in errors) or codes
            said = [update.message for update in errors if update.canonical_code]
            text += f" [{'; '.join(said[:3])}]" if said else ""
    return Refused(text, codes)


class Client:
    """The primary controller of a switch. Raises Refused wherever the switch refuses."""

    def __init__(self, address: str, device_id: int = 0) -> None:
        self.device_id = device_id
        options = [
            ("grpc.max_receive_message_length", MESSAGE_BYTES),
            ("grpc.max_send_message_length", MESSAGE_BYTES),
            # gRPC would send the path of a Unix socket as authority, which HTTP/2 servers in Rust take for malformed
            ("grpc.default_authority", "localhost"),
        ]
        self._channel = grpc.insecure_channel(address, options=options)
        self._stub: Any = cast(Any, p4r_grpc).P4RuntimeStub(self._channel)
        self._requests: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._stream: Any = self._stub.StreamChannel(iter(self._requests.get, None))
        bid = p4r.MasterArbitrationUpdate(device_id=device_id, election_id=ELECTION_ID)
        self._requests.put(p4r.StreamMessageRequest(arbitration=bid))
        self._packets: queue.Queue[p4r.PacketIn] = queue.Queue()
        messages = cast(Iterator[p4r.StreamMessageResponse], self._stream)
        try:
            answer = next(messages)
        except grpc.RpcError as error:
            self._channel.close()
            raise _refused(error, "arbitration") from None
        threading.Thread(target=self._listen, args=(messages,), daemon=True).start()
        if answer.arbitration.status.code:
            self.close()
            raise Refused(f"another controller is primary: {answer.arbitration.status.message}", (7,))

    def close(self) -> None:
        """End the session; the switch keeps what it has."""
        self._requests.put(None)
        self._stream.cancel()
        self._channel.close()

    def _listen(self, messages: Iterator[p4r.StreamMessageResponse]) -> None:
        with suppress(grpc.RpcError):
            for message in messages:
                if message.WhichOneof("update") == "packet":
                    self._packets.put(message.packet)

    def packets(self) -> list[p4r.PacketIn]:
        """The packets that the switch has sent since the last call."""
        return [self._packets.get_nowait() for _ in range(self._packets.qsize())]

    def packet_out(self, packet: p4r.PacketOut) -> None:
        """Give the switch a packet."""
        self._requests.put(p4r.StreamMessageRequest(packet=packet))

    def push(self, p4info: p4i.P4Info, program: bytes) -> None:
        """Load a program; the switch forgets everything else."""
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            election_id=ELECTION_ID,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=program),
        )
        self._call("SetForwardingPipelineConfig", request)

    def write(self, updates: Iterable[p4r.Update]) -> None:
        """Write updates in one request; those that are refused do not stop the others."""
        request = p4r.WriteRequest(device_id=self.device_id, election_id=ELECTION_ID, updates=updates)
        self._call("Write", request)

    def read(self, entities: Iterable[p4r.Entity]) -> list[p4r.Entity]:
        """Everything that the patterns ask for, in the switch's order."""
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
