"""Types of configuration values other than plain numbers: each with its syntax, and the complaint about other values.

A complaint consists of a problem and, after "; ", the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv4Interface, IPv4Network, IPv6Address
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

_SOCKET_PATH = 107
"""The longest path in bytes: Linux's ``sun_path`` without its terminating zero."""
_HOST_LENGTH = 253
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
"""The pattern of one label of a host name (RFC 1123, section 2.1). It permits underscores, which container networks
use."""
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
"""The pattern of a last label that resolvers would interpret as part of an IPv4 address."""
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "kB": 1_000, "KB": 1_000, "MB": 1_000_000}
_SIZE = re.compile(rf"([1-9][0-9]{{0,8}}) ?({'|'.join(_UNITS)})")
_EXTENSION = re.compile(r"[A-Z0-9][A-Z0-9=+ -]*")


class Section(BaseModel):
    """A mapping in the file. Unknown keys are refused, and values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _host_port(value: str) -> str:
    if value.startswith("unix:"):
        raise ValueError("a Unix socket is not supported; write HOST:PORT, such as 127.0.0.1:9559")
    if "://" in value:
        raise ValueError("a URL is not supported, and neither is TLS; write HOST:PORT, such as 127.0.0.1:9559")
    host, colon, port = value.rpartition(":")
    if not colon or value.endswith("]"):
        raise ValueError("has no port; write HOST:PORT, such as 127.0.0.1:9559")
    if not _is_host(host):
        raise ValueError("has no valid host; write a name, an IPv4 address, or an IPv6 address as in '[::1]:9559'")
    if not (_PORT.fullmatch(port) and int(port) <= 65535):
        raise ValueError("has no valid port; write a number from 1 to 65535 in digits 0 to 9, such as 127.0.0.1:9559")
    return value


def _host_name(value: str) -> str:
    if not _is_host(value):
        try:
            _host_port(value)
        except ValueError as error:
            raise ValueError(
                "not the name of a host; write one such as status.example, or status.example:8443, without a scheme"
            ) from error
    return value


def _is_host(host: str) -> bool:
    """Return whether a host is valid: a name, an IPv4 address, or an IPv6 address in brackets without a zone.

    gRPC would interpret the percent sign before a zone as an escape.
    """
    if host.startswith("["):
        return host.endswith("]") and "%" not in host and _is_address(IPv6Address, host[1:-1])
    labels = host.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _is_address(IPv4Address, host)
    return len(host) <= _HOST_LENGTH and all(_LABEL.fullmatch(label) for label in labels)


def _is_address(kind: Callable[[str], object], text: str) -> bool:
    try:
        kind(text)
    except AddressValueError:
        return False
    return True


def _mac(value: str) -> str:
    octets = value.lower().replace("-", ":").split(":")
    if len(octets) != 6 or any(len(p) != 2 or not all(c in "0123456789abcdef" for c in p) for p in octets):
        raise ValueError("not a MAC address; write one such as 02:00:00:00:00:01")
    if int(octets[0], 16) & 1:
        raise ValueError("a multicast address cannot be an interface's own; make its first number even")
    if not any(int(octet, 16) for octet in octets):
        raise ValueError("no interface has the address 0; write one such as 02:00:00:00:00:01")
    return ":".join(octets)


def _name(value: str) -> str:
    if not value or not all(c.isalnum() or c in "-_." for c in value):
        raise ValueError("not a name; write letters, digits, '-', '_' and '.' only")
    return value


def _path(value: str) -> str:
    if "\0" in value:
        raise ValueError("no path has a zero byte; leave it out")
    return value


def _socket_path(value: str) -> str:
    if not value:
        raise ValueError("not a path; name a socket, such as /run/sluice.sock")
    if len(value.encode()) > _SOCKET_PATH:
        raise ValueError(f"too long; the path of a Unix socket has at most {_SOCKET_PATH} bytes")
    return value


def _control(value: str) -> str:
    if not value.startswith("unix:"):
        return _host_port(value)
    if not value.startswith("unix:///"):
        raise ValueError("not the absolute path of a Unix socket; write unix:///run/agent.sock, or HOST:PORT")
    _socket_path(_path(value.removeprefix("unix://")))
    return value


def _size(value: int | str) -> int | str:
    if isinstance(value, str) and not _SIZE.fullmatch(value):
        raise ValueError("no size")
    return value


def in_bytes(size: Size) -> int:
    """Return a size in bytes."""
    if isinstance(size, int):
        return size
    match = _SIZE.fullmatch(size)
    assert match is not None, size
    return int(match[1]) * _UNITS[match[2]]


def _extension(value: str) -> str:
    if not _EXTENSION.fullmatch(value):
        raise ValueError("no extension of a mail protocol; write capital letters and digits, such as 8BITMIME")
    return value


def _match(value: object) -> object:
    alternatives = cast("list[object]", value) if isinstance(value, list) else [value]
    if not alternatives or not all(isinstance(mapping, dict) and mapping for mapping in alternatives):
        raise ValueError(
            "no match; write fields and what they must be, such as {path: {prefix: /a}}, or a list of such"
        )
    return value


def _prefix_length(value: object) -> object:
    if isinstance(value, str) and re.search("/0[0-9]", value):
        raise ValueError("a prefix length begins with no 0; write it as in 10.0.1.0/24")
    return value


def _with_prefix_length(value: object) -> object:
    if isinstance(value, str) and "/" not in value:
        raise ValueError("has no prefix length; write it too, as in 10.0.1.1/24")
    return value


def _not_null(value: object) -> object:
    if value is None:
        raise ValueError("has no keys below it; write {} after the colon for the defaults, or leave it out")
    return value


def _or(complaint: str) -> WrapValidator:
    """Return a validator that replaces the type's own complaints by ``complaint``."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise ValueError(complaint) from error

    return WrapValidator(check)


HostPort = Annotated[str, AfterValidator(_host_port)]
HostName = Annotated[str, AfterValidator(_host_name)]
"""A host name or address, followed by the port if it is not the default one."""
MacAddress = Annotated[str, AfterValidator(_mac)]
Name = Annotated[str, AfterValidator(_name)]
FilePath = Annotated[str, AfterValidator(_path)]
SocketPath = Annotated[FilePath, AfterValidator(_socket_path)]
Control = Annotated[str, AfterValidator(_control)]
"""The address at which an agent listens for the controller."""
Size = Annotated[
    Annotated[int, Field(ge=1, le=1 << 30)] | str,
    AfterValidator(_size),
    _or("not a size; write digits 0 to 9 without quotes for bytes, or a size such as 16KiB"),
]
Extension = Annotated[str, AfterValidator(_extension)]
Match = Annotated[Any, AfterValidator(_match), WithJsonSchema({"type": "object"})]
"""The contents of a rule's ``match``; the rule engine, not this type, checks them."""
Refusal = Annotated[
    Literal[True] | Annotated[int, Field(ge=100, le=599)],
    _or("not a refusal; write a status such as 403 without quotes, or true for the protocol's own"),
]
TransportPort = Annotated[int, Field(ge=1, le=65535)]
SwitchPort = Annotated[int, Field(ge=1, le=509)]
Vlan = Annotated[
    Literal["keep", "strip"] | Annotated[int, Field(ge=1, le=4094)],
    _or("not a VLAN; write keep, strip, or an id from 1 to 4094 without quotes"),
]
Protocol = Annotated[Literal["tcp"], _or("no protocol of a service, which is TCP only; write tcp, or leave it out")]
IpAddress = Annotated[IPv4Address, _or("not an IPv4 address; write four numbers from 0 to 255, such as 10.0.2.2")]
"""An IPv4 address. Only this type, ``Interface`` and ``Network`` exclude IPv6."""
Interface = Annotated[
    IPv4Interface,
    _or("not an IPv4 address and prefix length; write them as in 10.0.1.1/24"),
    BeforeValidator(_with_prefix_length),
    BeforeValidator(_prefix_length),
]
Network = Annotated[
    IPv4Network,
    _or("not an IPv4 network; write its first address and prefix length, such as 10.9.0.0/16"),
    BeforeValidator(_prefix_length),
]
NotNull = AfterValidator(_not_null)
"""A validator for an optional section: the section's key without a value is refused."""
