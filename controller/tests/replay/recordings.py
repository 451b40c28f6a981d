"""Write captures for tests: the packets of connections, as captured on all ports of the switch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from configs import web
from sluice.addresses import Address, from_text
from sluice.dataplane.pins import ACK, FIN, SYN

VIP = from_text("10.0.0.100")


S1, S2 = from_text("10.0.2.2"), from_text("10.0.3.2")


CLIENT = from_text("10.0.1.7")


HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)


Packet = tuple[float, Address, int, Address, int, int, int]
"""A packet: time in seconds, source address and port, destination address and port, TCP flags, bytes of data."""


def frame(packet: Packet, hop_limit: int = 64) -> bytes:
    _, source, source_port, destination, destination_port, flags, payload = packet
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 40 + payload, 0, 0, hop_limit, 6, 0, int(source), int(destination))
    tcp = struct.pack("!HHIIBBHHH", source_port, destination_port, source_port * 7, 0, 0x50, flags, 0, 0, 0)
    return b"\x02" * 12 + b"\x08\x00" + ip + tcp  # without the data, as in a capture with a short snapshot length


def recorded(frame: bytes, time: float = 1.0, *, beyond: int = 0) -> bytes:
    """Return a frame's record in a capture file; `beyond` is the number of bytes that the capture omitted."""
    return struct.pack("<IIII", int(time), round(time % 1 * 1e6), len(frame), len(frame) + beyond) + frame


def write(path: Path, packets: Sequence[Packet]) -> Path:
    path.write_bytes(HEADER + b"".join(recorded(frame(packet), packet[0], beyond=packet[6]) for packet in packets))
    return path


def connection(time: float, port: int, server: Address, *, answered: bool = True) -> list[Packet]:
    """Return a connection's packets as captured on all ports of the switch.

    Each packet is captured once when it enters the switch, and once when it leaves; only the last packet, the server's
    FIN, is captured once.
    """
    there = [(time, CLIENT, port, VIP, 80, SYN, 0), (time + 0.0001, CLIENT, port, server, 80, SYN, 0)]
    if not answered:
        return there
    return [
        *there,
        (time + 0.001, server, 80, CLIENT, port, SYN | ACK, 0),
        (time + 0.0011, VIP, 80, CLIENT, port, SYN | ACK, 0),
        (time + 0.002, CLIENT, port, VIP, 80, ACK, 0),
        (time + 0.0021, CLIENT, port, server, 80, ACK, 0),
        (time + 0.003, server, 80, CLIENT, port, ACK, 1000),
        (time + 0.0031, VIP, 80, CLIENT, port, ACK, 1000),
        (time + 0.004, server, 80, CLIENT, port, FIN | ACK, 0),
    ]


def load(seconds: int, lost: int) -> list[Packet]:
    """Return the packets of `seconds` seconds with 20 connections each, ten to each server.

    In every second server 2 leaves `lost` of its ten SYNs unanswered.
    """
    packets: list[Packet] = []
    for second in range(seconds):
        for n in range(20):
            time, port = 1000.0 + second + n * 0.05, 10_000 + second * 20 + n
            server = S1 if n % 2 else S2
            packets += connection(time, port, server, answered=server is S1 or n // 2 >= lost)
    return packets


def configured(tmp_path: Path) -> str:
    file = tmp_path / "sluice.yaml"
    file.write_text(web(period_s=1, window_s=5))
    return str(file)
