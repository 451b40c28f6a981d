"""Sends to whoever connects, as fast as TCP lets it, and tells what the kernel says of each connection (TCP_INFO).

python -m experiments.sabtsender --port 80 --connections 4 --congestion reno --rate 600000 --seconds 10
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SO_MAX_PACING_RATE = 47
"""include/uapi/asm-generic/socket.h"""
INFO_BYTES = 160
_RTT, _TOTAL_RETRANS, _MIN_RTT, _DATA_SEGS_OUT = 68, 100, 148, 156
"""Where struct tcp_info has them (include/uapi/linux/tcp.h), 32 bits each; times are in microseconds."""
_BYTES_ACKED = 120
"""64 bits."""
SAMPLE_S = 0.05
PATIENCE_S = 30.0
CHUNK = bytes(65_536)


@dataclass
class Followed:
    """A connection, and the kernel's smoothed round trips of it."""

    socket: socket.socket
    address: str
    port: int
    total_us: int = 0
    samples: int = 0
    acked_before: int = 0
    """Bytes that had been acknowledged when it was to have settled."""

    def info(self) -> tuple[int, int, int, int]:
        """Smoothed round trip, retransmissions, least round trip and segments with data."""
        raw = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        rtt, again, least, segments = (
            struct.unpack_from("=I", raw, place)[0] for place in (_RTT, _TOTAL_RETRANS, _MIN_RTT, _DATA_SEGS_OUT)
        )
        return rtt, again, least, segments

    def sample(self) -> None:
        """Note the smoothed round trip."""
        self.total_us += self.info()[0]
        self.samples += 1

    def acked(self) -> int:
        """Bytes that the client has acknowledged."""
        raw = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        return struct.unpack_from("=Q", raw, _BYTES_ACKED)[0]

    def told(self) -> dict[str, Any]:
        """What is said in the end."""
        _, again, least, segments = self.info()
        mean_us = self.total_us / self.samples
        return {
            "client": self.address,
            "port": self.port,
            "rtt_s": mean_us / 1e6,
            "least_rtt_s": least / 1e6,
            "again": again,
            "segments": segments,
            "acked": self.acked() - self.acked_before,
        }


def accept(port: int, number: int, congestion: str, rate: int) -> list[Followed]:
    """Wait for all of them."""
    found: list[Followed] = []
    with socket.create_server(("", port), backlog=number) as listening:
        listening.settimeout(PATIENCE_S)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        listening.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
        print("listening", flush=True)
        for _ in range(number):
            one, (address, client_port) = listening.accept()
            one.setblocking(False)
            found.append(Followed(one, address, client_port))
    return found


def send(connections: Sequence[Followed], seconds: float, settle_s: float = 0.0) -> None:
    """Keep every connection's buffer full, and sample; what is acknowledged counts once all has settled."""
    now = time.monotonic()
    end, due, settled = now + seconds, now + SAMPLE_S, now + settle_s
    with selectors.DefaultSelector() as ready:
        for one in connections:
            ready.register(one.socket, selectors.EVENT_WRITE)
        while (now := time.monotonic()) < end:
            for key, _ in ready.select(max(0.0, due - now)):
                try:
                    key.fileobj.send(CHUNK)  # type: ignore[union-attr]
                except BlockingIOError:
                    continue
            if time.monotonic() >= due:
                due += SAMPLE_S
                for one in connections:
                    one.sample()
                    if now < settled:
                        one.acked_before = one.acked()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Send, and tell what the kernel says of it.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--congestion", default="reno")
    parser.add_argument("--rate", type=int, default=600_000, help="bytes per second of each at most")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--settle", type=float, default=0.0, help="seconds whose bytes do not count")
    options = parser.parse_args(arguments)
    connections = accept(options.port, options.connections, options.congestion, options.rate)
    send(connections, options.seconds, options.settle)
    print(json.dumps([one.told() for one in connections]), flush=True)
    for one in connections:  # what is in the buffers is not sent any more: the switch and the kernel end alike
        one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.socket.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
