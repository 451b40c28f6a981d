"""Test that the embedded switch's P4Runtime messages match those of finsy: names, numbers, types, labels of fields.

The switch prints its descriptors; finsy contains the official ones. Comments and the division into files may differ,
the wire format may not.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from finsy.proto import p4r
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

BINARY = Path(__file__).resolve().parents[2] / "target/release/sluice-switch"
PACKAGES = ("p4.v1", "p4.config.v1", "google.rpc")

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="the embedded switch is not built: `make setup` builds it")


def official() -> Iterator[descriptor_pb2.FileDescriptorProto]:
    """Yield the descriptors of the .proto files from which finsy was generated."""
    waiting: list[FileDescriptor] = [p4r.DESCRIPTOR]
    seen: set[str] = set()
    while waiting:
        file = waiting.pop()
        if file.name in seen:
            continue
        seen.add(file.name)
        waiting += file.dependencies
        proto = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(proto)
        yield proto


def own() -> Iterator[descriptor_pb2.FileDescriptorProto]:
    """Yield the descriptors of the .proto files from which the switch was generated."""
    printed = subprocess.run([BINARY, "--protoset"], check=True, capture_output=True, timeout=60).stdout
    yield from descriptor_pb2.FileDescriptorSet.FromString(printed).file


def message_facts(message: descriptor_pb2.DescriptorProto, prefix: str) -> Iterator[tuple[str, object]]:
    """Yield what determines the wire format of a message: the message, its fields, and its nested messages and enums.

    Each item is a full name with a value to compare, for a field its number, label, type and oneof.
    """
    name = f"{prefix}.{message.name}"
    yield name, "message"
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else None
        label = descriptor_pb2.FieldDescriptorProto.Label.Name(field.label)
        kind = descriptor_pb2.FieldDescriptorProto.Type.Name(field.type)
        yield f"{name}.{field.name}", (field.number, label, kind, field.type_name, oneof)
    for nested in message.nested_type:
        yield from message_facts(nested, name)
    for enum in message.enum_type:
        yield from enum_facts(enum, name)


def enum_facts(enum: descriptor_pb2.EnumDescriptorProto, prefix: str) -> Iterator[tuple[str, object]]:
    """Yield an enum and its values: full names, each with what is to be compared."""
    yield f"{prefix}.{enum.name}", "enum"
    for value in enum.value:
        yield f"{prefix}.{enum.name}.{value.name}", value.number


def contract(files: Iterable[descriptor_pb2.FileDescriptorProto]) -> dict[str, object]:
    """Return, by full name, what determines the wire format of P4Runtime's packages: messages, enums and RPCs."""
    facts: dict[str, object] = {}
    for file in files:
        if file.package not in PACKAGES:
            continue
        for message in file.message_type:
            facts.update(message_facts(message, file.package))
        for enum in file.enum_type:
            facts.update(enum_facts(enum, file.package))
        for service in file.service:
            for method in service.method:
                streams = (method.client_streaming, method.server_streaming)
                facts[f"{file.package}.{service.name}.{method.name}"] = (
                    method.input_type,
                    method.output_type,
                    *streams,
                )
    return facts


def test_both_speak_the_same_messages() -> None:
    """No message, field, enum value or RPC is missing, different or additional in the switch."""
    theirs, ours = contract(official()), contract(own())
    assert len(theirs) > 400
    assert ours == theirs
