"""IP addresses of either version as one type, and their conversion from and to text, bytes and numbers.

finsy encodes an ``Address`` in a table entry without help from this module.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

Address = IPv4Address | IPv6Address
Packed = bytes
"""An address as in packets, 4 or 16 bytes (``Address.packed``). The data plane's hashes take these bytes.

Code that looks up an address per packet or per destination uses the bytes as the key, because hashing an ``Address`` is
slow.
"""
BROADCAST = IPv4Address("255.255.255.255")
"""The limited broadcast address; IPv6 has none."""
IPV4_BITS = 32
"""Number of bits of a field or register cell that contains an IPv4 address."""


def from_text(text: str) -> Address:
    """Parse an address from text. Raises ValueError if the text is no address."""
    return ip_address(text)


@lru_cache(maxsize=1 << 12)
def from_packed(packed: Packed) -> Address:
    """Return the address in bytes of a packet; 4 bytes are IPv4, 16 are IPv6. Raises ValueError for another length."""
    return ip_address(packed)


def from_number(number: int, bits: int) -> Address:
    """Return the address in a field of ``bits`` bits, given as a number. Raises OverflowError if the number is
    wider."""
    return ip_address(packed(number, bits))


def packed(number: int, bits: int) -> Packed:
    """Return the bytes of the address in a field of ``bits`` bits. Raises OverflowError if the number is wider."""
    return number.to_bytes(bits // 8)


def number(address: Packed) -> int:
    """Return an address as a number, as in a field or a trace."""
    return int.from_bytes(address)


def text(address: Packed) -> str:
    """Return an address as text. Raises ValueError if it is neither 4 nor 16 bytes long."""
    return str(from_packed(address))


def order(address: Address) -> tuple[int, int]:
    """Return a sort key for addresses of both versions, which do not compare with each other."""
    return address.version, int(address)
