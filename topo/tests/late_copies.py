"""A program that sends delayed copies of the TCP segments that leave an interface, like a network that duplicates
packets. It does not need netem.

Segmentation offload of the interface must be off, as on hosts of the lab, because the program cannot send a frame
larger than the MTU.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import time
from collections import Counter
from dataclasses import dataclass

from topo.load.program import main

ETH_P_ALL = 0x0003
PACKET_OUTGOING = 4
"""Type of packets that leave an interface (include/uapi/linux/if_packet.h)."""
COPIES = 2
LATEST_S = 0.004
RECEIVE_BUFFER = 1 << 24


def is_tcp(frame: bytes) -> bool:
    """Return whether a frame without VLAN tag contains a TCP segment over IPv4."""
    return frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP


def copy(packets: socket.socket, sender: socket.socket, draws: random.Random) -> None:
    """For each TCP segment that `packets` receives as leaving the interface, send COPIES copies through `sender`, each
    after a random time of at most LATEST_S seconds; never return."""
    waiting: list[tuple[float, bytes]] = []
    copies: Counter[bytes] = Counter()
    while True:
        wait_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if select.select([packets], [], [], wait_s)[0]:
            frame, (_, _, kind, *_) = packets.recvfrom(1 << 16)
            if kind == PACKET_OUTGOING and is_tcp(frame):
                if frame in copies:
                    copies -= Counter([frame])
                else:
                    for _ in range(COPIES):
                        heapq.heappush(waiting, (time.monotonic() + LATEST_S * draws.random(), frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, frame = heapq.heappop(waiting)
            copies[frame] += 1
            sender.send(frame)


@dataclass(frozen=True)
class LateCopies:
    """The program that sends copies at the interface `interface`; it prints a line once it has begun."""

    interface: str
    seed: int = 1

    def run(self) -> None:
        """Copy segments until the process ends. The copies also leave the interface; the program counts them, so that
        it does not copy them again."""
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as packets:
            packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            packets.bind((self.interface, 0))
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
                sender.bind((self.interface, 0))
                print("copying", flush=True)
                copy(packets, sender, random.Random(self.seed))


if __name__ == "__main__":
    main(globals())
