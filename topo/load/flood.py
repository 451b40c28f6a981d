"""SYNs from addresses that never answer, at a steady rate, each of a connection of its own.

python -m topo.load.flood --to 10.0.0.100:80 --sources 10.120.0.0/16 --per-s 500 --seconds 30
"""

from __future__ import annotations

import argparse
import ipaddress
import random
import socket
import sys
import time
from collections.abc import Sequence

import numpy as np
from sluice.addresses import from_text

from topo.load.segments import SYN, Segments, frames

ETHERNET_BYTES = 14
NO_MACS = (b"", b"")
TICK_S = 0.01


def packets(to: tuple[str, int], sources: ipaddress.IPv4Network, count: int, seed: int) -> list[bytes]:
    """Return so many IP packets, each a SYN from another place."""
    drawn = random.Random(seed)

    def column(low: int, high: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        return np.array([drawn.randrange(low, high) for _ in range(count)], np.uint32)

    def same(value: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
        return np.full(count, value, np.uint32)

    first = int(sources.network_address)
    made = Segments(
        src=column(first, first + sources.num_addresses),
        src_port=column(1024, 1 << 16),
        dst=same(int(from_text(to[0]))),
        dst_port=same(to[1]),
        sequence=column(0, 1 << 32),
        acknowledgement=same(0),
        flags=same(SYN),
        word=same(0),
        has_word=np.zeros(count, np.bool_),
    )
    return [bytes(row[ETHERNET_BYTES:]) for row in frames(NO_MACS, made)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Flood from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m topo.load.flood", description="SYNs that nobody stands behind.")
    parser.add_argument("--to", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--sources", type=ipaddress.IPv4Network, required=True)
    parser.add_argument("--per-s", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    address, _, port = options.to.rpartition(":")
    syns = packets((address, int(port)), options.sources, round(options.per_s * options.seconds), options.seed)
    began, sent = time.monotonic(), 0
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as out:
        while sent < len(syns):
            due = min(len(syns), round((time.monotonic() - began) * options.per_s))
            for packet in syns[sent:due]:
                out.sendto(packet, (address, 0))
            sent = due
            time.sleep(TICK_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
