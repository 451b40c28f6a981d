"""IP addresses as one type, of either version: how they are made of text, bytes and numbers, and what goes on the wire.

P4Runtime's bytes are finsy's: an ``Address`` goes into an entry as it is.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

Address = IPv4Address | IPv6Address
Packed = bytes
"""An address as packets have it, 4 or 16 bytes (``Address.packed``): what the data plane hashes.

It is also the key of the loops that look up an address per packet or per destination: an ``Address`` is slow there.
"""
BROADCAST = IPv4Address("255.255.255.255")
"""IPv6 has none."""
IPV4_BITS = 32
"""Width of a field or a register cell for addresses of version 4."""


def from_text(text: str) -> Address:
    """As people write it. Raises ValueError."""
    return ip_address(text)


@lru_cache(maxsize=1 << 12)
def from_packed(packed: Packed) -> Address:
    """As packets have it; the length tells the version. Raises ValueError."""
    return ip_address(packed)


def from_number(number: int, bits: int) -> Address:
    """As a field of so many bits has it. Raises OverflowError."""
    return ip_address(packed(number, bits))


def packed(number: int, bits: int) -> Packed:
    """The same for loops. Raises OverflowError."""
    return number.to_bytes(bits // 8)


def number(address: Packed) -> int:
    """As a field or a trace has it."""
    return int.from_bytes(address)


def text(address: Packed) -> str:
    """As people write it. Raises ValueError."""
    return str(from_packed(address))


def order(address: Address) -> tuple[int, int]:
    """What a list of both versions is sorted by: they do not compare with each other."""
    return address.version, int(address)
