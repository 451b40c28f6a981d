"""Traces one packet through a copy of an embedded switch; the copy runs in a separate process.

The original switch is only read. The copy has the original's program, entries, meters and registers. However, the
copy's token buckets are full, and its clock starts at 0, so no pin (entry of the connection table) has expired.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import subprocess
import tempfile
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
from finsy import P4Schema
from finsy.proto import U128, p4r, p4r_grpc

from sluice.names import Counter, DropReason, Table

from . import cellwire
from .errors import SwitchError
from .registers import cell_update

NAME = "sluice-switch"
_PATIENCE_S = 60.0
_BATCH = 8192
_KEYLESS = (Table.TIMERS, Table.RATE_SETTINGS, Table.SAMPLING)
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_LOCAL = [*_OPTIONS, ("grpc.default_authority", "localhost")]
"""Channel options for a Unix socket: the socket's path is not a valid authority in HTTP/2 (RFC 9113, section 8.3.1)."""
_PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)
"""The file header of a capture of Ethernet frames."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A frame that arrives at one of the switch's ports."""

    frame: bytes
    port: int
    ports: Sequence[int]
    """The numbers of all ports of the switch."""


def trace(address: str, device_id: int, program: Path, arrival: Arrival) -> dict[str, Any]:
    """Return the frame's ``port`` and ``length`` in bytes, the ``steps`` of its trace through the pipeline, and
    ``drop``: the reason for which the switch dropped it, or None.

    Raises SwitchError, also for BMv2, whose registers cannot be read over P4Runtime.
    """
    try:
        with grpc.insecure_channel(address, options=_OPTIONS) as channel:
            config, updates = _read(channel, address, device_id)
        with (
            tempfile.TemporaryDirectory(prefix="sluice-copy-") as folder,
            _started(program, Path(folder), arrival) as (output, pipe),
            grpc.insecure_channel(f"unix:{folder}/grpc", options=_LOCAL) as channel,
        ):
            _program(channel, config, updates)
            length = len(arrival.frame)
            os.write(pipe, struct.pack("<IIII", 0, 0, length, length) + arrival.frame)
            steps = json.loads(_line(output, '"packet":1,'))["steps"]
            drop = _drop(channel, P4Schema(config.p4info))
    except grpc.RpcError as error:
        raise SwitchError(f"switch {address}: cannot copy it: {error}") from error
    except OSError as error:
        raise SwitchError(f"cannot run a copy of the switch: {error}") from error
    return {"port": arrival.port, "length": length, "steps": steps, "drop": drop}


# -- reading of the original switch


def _read(channel: grpc.Channel, address: str, device_id: int) -> tuple[Any, list[p4r.Update]]:
    stub: Any = p4r_grpc.P4RuntimeStub(channel)
    request = p4r.GetForwardingPipelineConfigRequest(device_id=device_id)
    config = stub.GetForwardingPipelineConfig(request, timeout=_PATIENCE_S).config
    schema = P4Schema(config.p4info)
    entities = [p4r.Entity(table_entry=p4r.TableEntry())]
    entities += [
        p4r.Entity(table_entry=p4r.TableEntry(table_id=schema.tables[table].id, is_default_action=True))
        for table in _KEYLESS
    ]
    entities += [p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=meter.id)) for meter in schema.meters]
    updates: list[p4r.Update] = []
    for response in stub.Read(p4r.ReadRequest(device_id=device_id, entities=entities), timeout=_PATIENCE_S):
        updates += [_written(entity) for entity in response.entities if _is_set(entity)]
    try:
        for register in schema.registers:
            updates += _cells(channel, device_id, register.id)
    except grpc.RpcError as error:
        if isinstance(error, grpc.Call) and error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise SwitchError(
                f"switch {address}: `--packet` needs the embedded switch; BMv2 has no such trace"
            ) from error
        raise
    return config, updates


def _is_set(entity: p4r.Entity) -> bool:
    """Return whether a controller has ever written an entity: unset meters are not copied."""
    return entity.WhichOneof("entity") == "table_entry" or entity.meter_entry.HasField("config")


def _written(entity: p4r.Entity) -> p4r.Update:
    inserted = entity.WhichOneof("entity") == "table_entry" and not entity.table_entry.is_default_action
    return p4r.Update(type=p4r.Update.INSERT if inserted else p4r.Update.MODIFY, entity=entity)


def _cells(channel: grpc.Channel, device_id: int, number: int) -> Iterator[p4r.Update]:
    """Yield the updates that write a register's non-zero cells into the copy."""
    read = channel.unary_stream(
        "/p4.v1.P4Runtime/Read",
        request_serializer=p4r.ReadRequest.SerializeToString,
        response_deserializer=bytes,
    )
    entity = p4r.Entity(register_entry=p4r.RegisterEntry(register_id=number))
    for answer in read(p4r.ReadRequest(device_id=device_id, entities=[entity]), timeout=_PATIENCE_S):
        _, indices, values = cellwire.decode(answer, [number])
        nonzero = np.flatnonzero(values)
        for index, value in zip(indices[nonzero].tolist(), values[nonzero].tolist(), strict=True):
            yield cell_update(number, index, value)


# -- process of the copy


@contextmanager
def _started(program: Path, folder: Path, arrival: Arrival) -> Generator[tuple[queue.Queue[str], int]]:
    """Start the copy, serving on ``folder/grpc``; yield its output lines, and the descriptor of the pipe that feeds the
    frame's port."""
    command = [str(program), "--no-p4", "--use-files", "0", "--trace=json", "--interpret", "--device-id", "1"]
    for port in arrival.ports:
        command += ["-i", f"{port}@p{port}"]
        if port != arrival.port:
            (folder / f"p{port}_in.pcap").write_bytes(_PCAP)
    command += ["--", "--grpc-server-addr", f"unix:{folder}/grpc", "--cpu-port", "510"]
    path = folder / f"p{arrival.port}_in.pcap"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)  # read and write, so that opening does not wait for the copy to open its end
    os.write(pipe, _PCAP)
    output: queue.Queue[str] = queue.Queue()
    try:
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            try:
                assert process.stdout is not None
                threading.Thread(target=_listen, args=(process.stdout, output), daemon=True).start()
                _line(output, "serving P4Runtime on")
                yield output, pipe
            finally:
                process.kill()
    finally:
        os.close(pipe)


def _listen(lines: Iterable[str], output: queue.Queue[str]) -> None:
    for line in lines:
        output.put(line)


def _line(output: queue.Queue[str], text: str) -> str:
    with suppress(queue.Empty):
        while True:
            line = output.get(timeout=_PATIENCE_S)
            if text in line:
                return line
    raise SwitchError(f"the copy of the switch did not print {text!r} within {_PATIENCE_S:g} s")


def _program(channel: grpc.Channel, config: Any, updates: Sequence[p4r.Update]) -> None:
    stub: Any = p4r_grpc.P4RuntimeStub(channel)
    bid = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
    requests: queue.Queue[Any] = queue.Queue()
    requests.put(p4r.StreamMessageRequest(arbitration=bid))
    stream = stub.StreamChannel(iter(requests.get, None))
    next(stream)
    lead, action = U128.encode(1), p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
    commit = p4r.SetForwardingPipelineConfigRequest(device_id=1, election_id=lead, action=action, config=config)
    stub.SetForwardingPipelineConfig(commit, timeout=_PATIENCE_S)
    for first in range(0, len(updates), _BATCH):
        batch = updates[first : first + _BATCH]
        stub.Write(p4r.WriteRequest(device_id=1, election_id=lead, updates=batch), timeout=_PATIENCE_S)
    requests.put(None)


def _drop(channel: grpc.Channel, schema: P4Schema) -> str | None:
    """Return the reason of the drop that the copy counted; None if the copy dropped nothing."""
    stub: Any = p4r_grpc.P4RuntimeStub(channel)
    number = schema.counters[Counter.VERDICTS].id
    item = p4r.Entity(counter_entry=p4r.CounterEntry(counter_id=number))
    for response in stub.Read(p4r.ReadRequest(device_id=1, entities=[item]), timeout=_PATIENCE_S):
        for item in response.entities:
            reason = item.counter_entry.index.index
            if item.counter_entry.data.packet_count and reason != DropReason.NONE:
                return DropReason(reason).name.lower()
    return None
