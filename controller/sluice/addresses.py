"""IP addresses of either version as one type, and their conversion from and to text, bytes and numbers.

finsy encodes an ``Address`` in an entry by itself.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

Address = IPv4Address | IPv6Address
Packed = bytes
"""An address as in packets, 4 or 16 bytes (``Address.packed``). The data plane hashes it.

Code that looks up an address per packet or per destination uses it as a key, since an ``Address`` is slow there.
"""
BROADCAST = IPv4Address("255.255.255.255")
"""The limited broadcast address; IPv6 has none."""
IPV4_BITS = 32
"""Width of a field or register cell for IPv4 addresses."""


def from_text(text: str) -> Address:
    """Return the address in a text. Raises ValueError."""
    return ip_address(text)


@lru_cache(maxsize=1 << 12)
def from_packed(packed: Packed) -> Address:
    """Return the address in bytes of a packet; their length determines the version. Raises ValueError."""
    return ip_address(packed)


def from_number(number: int, bits: int) -> Address:
    """Return the address in a field of ``bits`` bits. Raises OverflowError."""
    return ip_address(packed(number, bits))


def packed(number: int, bits: int) -> Packed:
    """Return the bytes of the address in a field of ``bits`` bits. Raises OverflowError."""
    return number.to_bytes(bits // 8)


def number(address: Packed) -> int:
    """Return an address as a number, as in a field or a trace."""
    return int.from_bytes(address)


def text(address: Packed) -> str:
    """Return an address as text. Raises ValueError."""
    return str(from_packed(address))


def order(address: Address) -> tuple[int, int]:
    """Return a sort key for addresses of both versions, which do not compare with each other."""
    return address.version, int(address)
